//go:build linux && cgo && nccl && rccl

package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/program"
)

func TestOnDevices(t *testing.T) {
	gputest.Fake(t, "one device may not do for two ranks")
	path := program.Build(t, "nccl", "rccl")
	for _, n := range []int{1, 2, 3} {
		out, _ := program.Ranks(t, path, n)
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d on cuda:\d \(.*FAKE.*\): 10 steps of 8 buckets averaged, all right$`).FindAllString(out, -1), n, out)
	}
}
