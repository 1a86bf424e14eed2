package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Ranks that share cores do not count them twice; those that are bound to some of their own have them.
func TestCores(t *testing.T) {
	one := func(at ...int) (set cpus) {
		for _, i := range at {
			set[i/64] |= 1 << (i % 64)
		}
		return set
	}
	type rank struct {
		host uint64
		set  cpus
	}
	for _, tc := range []struct {
		name  string
		ranks []rank
		want  int
	}{
		{"one rank on two cores", []rank{{0, lowest(2)}}, 1},
		{"four on two", []rank{{0, lowest(2)}, {0, lowest(2)}, {0, lowest(2)}, {0, lowest(2)}}, 2},
		{"bound apart", []rank{{0, one(0)}, {0, one(1)}, {0, one(70)}}, 3},
		{"bound to one", []rank{{0, one(70)}, {0, one(70)}}, 1},
		{"two hosts", []rank{{1, lowest(2)}, {0, lowest(2)}, {1, lowest(2)}, {0, lowest(2)}, {0, lowest(2)}}, 4},
		{"more than fit", []rank{{0, lowest(5000)}}, 1},
	} {
		var all []uint64
		for _, r := range tc.ranks {
			all = append(append(all, r.host), r.set[:]...)
		}
		require.Equal(t, tc.want, together(all), tc.name)
	}
	for status, want := range map[string]cpus{
		"Name:\tgpt\nCpus_allowed:\t00000000,00000003\nMems_allowed:\t1\n": lowest(2),
		"\nCpus_allowed:\tf\n": lowest(4), "\nCpus_allowed:\t40,00000000,00000000\n": one(70), "\nCpus_allowed:\t80000001,00000000\n": one(32, 63),
	} {
		got, ok := listed(status)
		require.True(t, ok, status)
		require.Equal(t, want, got, status)
	}
	for _, status := range []string{"", "Name:\tgpt\n", "\nCpus_allowed:\tx\n", "\nCpus_allowed:\t0\n", "\nCpus_allowed:\t1" + strings.Repeat(",00000000", 32)} {
		_, ok := listed(status)
		require.False(t, ok, status)
	}
	for _, n := range []int{1, 2, 2*runtime.NumCPU() + 1} {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			got, err := cores(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, min(n, runtime.NumCPU()), got)
		})
	}
}

// What a run says that its cores can do, and mfu, is of cores and not of ranks.
func TestPeakIsOfCores(t *testing.T) {
	n := runtime.NumCPU()
	for _, ranks := range []int{1, n, 4 * n} {
		var out bytes.Buffer
		ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
			c := words(t, small+fmt.Sprintf("1 -rows %d", 4*n))
			require.NoError(t, c.place(ranks))
			r := &run{out: &out, peak: 1e9}
			require.NoError(t, r.train(t.Context(), world, c))
		})
		require.Contains(t, out.String(), fmt.Sprintf("these cores can do %d GFLOP/s", min(ranks, n)))
	}
}
