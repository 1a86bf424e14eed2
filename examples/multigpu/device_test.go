//go:build linux && cgo && nccl && rccl

package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
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

// Ranks keep their devices in a Comm in which they have other numbers, as after Shrink and Grow: the memory lies where the Comm works.
func TestDeviceIsKept(t *testing.T) {
	gputest.Fake(t, "it takes three devices")
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		part := ccltest.Split(t, c, min(c.Rank(), 1), 0)
		at, wrong, err := run(t.Context(), part)
		require.NoError(t, err)
		require.Zero(t, wrong)
		require.Contains(t, at, fmt.Sprintf("cuda:%d ", c.Rank()))
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}
