package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/internal/measure"
)

// Every case has a name of its own, operations that exist, sizes, and a bar for each of them.
func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range cases {
		require.False(t, names[c.name], c.name)
		names[c.name] = true
		require.NotContains(t, c.name, ",", "-case separates names by it")
		for _, op := range c.operations() {
			require.Contains(t, append(measure.Operations, "kernel", "start", "memory"), op, c.name)
		}
		require.Greater(t, c.factor, 1, c.name)
		for size := c.min; ; size = min(size*c.factor, c.max) {
			require.NotEmpty(t, c.verdict(size, 0), "%s: %d bytes", c.name, size)
			if size >= c.max {
				break
			}
		}
		require.NotEmpty(t, c.against, c.name)
		require.Contains(t, []string{"", besideLoops, besideJob}, c.beside, c.name)
	}
}

func TestBarred(t *testing.T) {
	c := testCase{bars: []bar{{8, 2 * kib, 0.6}, {4 * kib, 3 * mib, 1}}, geomean: 0.65}
	require.Equal(t, "0.6 from 8 B to 2 KiB; 1 from 4 KiB to 3 MiB; 0.65 in the geometric mean of each operation", c.barred())
}

func TestContest(t *testing.T) {
	small, large := measure.Key{Op: "reduce", Bytes: 8}, measure.Key{Op: "reduce", Bytes: 1 * mib}
	best := map[measure.Key]float64{small: 1, large: 100}
	c := contest{}
	c.note("reduce", "best", best, best)
	c.note("reduce", "near", map[measure.Key]float64{small: 3, large: 149}, best)
	c.note("reduce", "slow", map[measure.Key]float64{small: 1.6, large: 151}, best)
	c.note("reduce", "hung", nil, best)
	for peer, want := range map[string]bool{"best": true, "near": true, "slow": false, "hung": true, "another": true} {
		require.Equal(t, want, c.has("reduce", peer), peer)
	}
	c.note("reduce", "slow", map[measure.Key]float64{small: 1.5}, best)
	require.True(t, c.has("reduce", "slow"), "in one of the rounds")
	c.note("reduce", "near", map[measure.Key]float64{small: 9}, best)
	require.True(t, c.has("reduce", "near"), "in one of the rounds")
	require.True(t, c.has("gather", "slow"), "of another operation")
}

// The limits of large sizes are measured, at the sizes that the case has.
func TestLarge(t *testing.T) {
	for _, tc := range []struct {
		c        testCase
		min, max int
		want     bool
	}{
		{testCase{limit: true, min: 8, max: 64 * mib, factor: 8}, 2 * mib, 64 * mib, true},
		{testCase{limit: true, min: 8, max: 256 * mib, factor: 4}, 2 * mib, 64 * mib, true},
		{testCase{limit: true, min: 8, max: 16 * mib, factor: 4 * mib}, 16 * mib, 16 * mib, true},
		{testCase{limit: true, min: 8, max: 1 * mib, factor: 8}, 0, 0, false},
		{testCase{limit: true, min: 128 * mib, max: 256 * mib, factor: 2}, 0, 0, false},
		{testCase{min: 8, max: 64 * mib, factor: 8}, 0, 0, false},
	} {
		large, ok := tc.c.large()
		require.Equal(t, tc.want, ok, "%+v", tc.c)
		if ok {
			require.Equal(t, []int{tc.min, tc.max}, []int{large.min, large.max}, "%+v", tc.c)
		}
	}
}

// A table says how far each large size is from the limit, and nothing of limits where its case asks for none.
func TestLimitColumn(t *testing.T) {
	small, large := measure.Key{Op: "gather", Bytes: 8}, measure.Key{Op: "gather", Bytes: 2 * mib}
	r := result{c: &testCase{name: "x", ops: "gather", limit: true, bars: []bar{{8, 2 * mib, 1}}},
		ours:  map[measure.Key][]float64{small: {1, 1, 1}, large: {120, 130, 110}},
		best:  map[measure.Key][]float64{small: {2, 2, 2}, large: {100, 100, 100}},
		limit: map[measure.Key][]float64{large: {100, 100, 100}}, who: map[measure.Key]map[string]int{}}
	lines := strings.Split(r.table(), "\n")
	require.Regexp(t, ` 95 % +limit +bar$`, lines[1])
	require.Regexp(t, ` 0.50 0.50..0.50 +1.00$`, lines[2])
	require.Regexp(t, ` 1.20 \S+ +1.20 +1.00`, lines[3])
	r.c.limit = false
	require.NotContains(t, r.table(), "limit")
}
