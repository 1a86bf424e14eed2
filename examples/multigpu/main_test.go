package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/program"
)

func TestMultiGPU(t *testing.T) {
	path := program.Build(t)
	for _, n := range []int{1, 2, 3} {
		out, errs := program.Ranks(t, path, n)
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d on the CPU: 10 steps of 8 buckets averaged, all right$`).FindAllString(out, -1), n)
		require.Empty(t, errs)
	}
}
