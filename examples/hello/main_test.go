package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/program"
)

func TestHello(t *testing.T) {
	path := program.Build(t)
	for _, n := range []int{1, 2, 4} {
		out, errs := program.Ranks(t, path, n)
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d, on \S+: number \d of the \d there$`).FindAllString(out, -1), n)
		require.Contains(t, out, []string{1: "the ranks add up to 0\n", 2: "the ranks add up to 1\n", 4: "the ranks add up to 6\n"}[n])
		require.Empty(t, errs)
	}
}
