//go:build nccl && cgo && linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// The table has all rows of each length, and the profile is written.
func TestBudget(t *testing.T) {
	fake.Use(t)
	t.Setenv("FAKE_NCCL_IDLE", "1")
	var out strings.Builder
	profile := filepath.Join(t.TempDir(), "cpu.prof")
	require.NoError(t, run(&out, "16,80", 3, profile))
	text := out.String()
	require.Contains(t, text, "(FAKE)")
	for _, want := range []string{"\n16 calls in a stretch, 3 rounds", "\n80 calls in a stretch", inC, alone, "in place", "two Bufs of one Mem", "Group of 8"} {
		require.Contains(t, text, want)
	}
	size, err := os.Stat(profile)
	require.NoError(t, err)
	require.Positive(t, size.Size())
}

// What is wrong with the flags, or with the library, is an error.
func TestBudgetRefuses(t *testing.T) {
	fake.Use(t)
	var out strings.Builder
	require.EqualError(t, run(&out, "16,x", 3, ""), "-stretches 16,x: numbers of at least 8")
	require.EqualError(t, run(&out, "7", 3, ""), "-stretches 7: numbers of at least 8")
	require.EqualError(t, run(&out, "16", 0, ""), "-rounds 0: at least 1")
	t.Setenv("FAKE_FAIL", "ncclAllReduce:0:3")
	require.ErrorContains(t, run(&out, "16", 3, ""), "ncclAllReduce")
}

// The least and the median are of all rounds, whatever their order.
func TestRow(t *testing.T) {
	r := row{ns: []float64{5, 1, 9, 3, 7}}
	require.Equal(t, 1.0, r.least())
	require.Equal(t, 5.0, r.median())
}
