//go:build fault && linux

package ccl_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Ranks of one host were built for different CPUs, or without assembly, and some ask for reading: rows of tuning's table are forced
// here. They choose alike, and get what they should.
func TestBuildsThatDiffer(t *testing.T) {
	const intel, amd, other = 1, 2, 3
	for _, tc := range []struct {
		rows []int
		read []string // GOCCL_SHM_READ by rank
	}{
		{[]int{other, amd}, []string{"1", ""}},
		{[]int{amd, other}, []string{"", "1"}},
		{[]int{amd, other}, []string{"1", "1"}},
		{[]int{amd, other}, []string{"", ""}},
		{[]int{intel, other}, []string{"", ""}},
		{[]int{intel, amd}, []string{"1", "0"}},
		{[]int{other, other, amd}, []string{"1", "1", ""}},
		{[]int{amd, other, other}, []string{"", "1", "1"}},
		{[]int{amd, other, intel}, []string{"1", "1", "1"}},
	} {
		t.Run(fmt.Sprintf("rows %v, GOCCL_SHM_READ %q", tc.rows, tc.read), func(t *testing.T) {
			plan := ""
			for r, row := range tc.rows {
				plan += fmt.Sprintf("%d@cpu.family:1:from:%d,", r, row)
			}
			t.Setenv("GOCCL_FAULT", plan)
			t.Setenv("GOCCL_SHM_READ", "")
			n := len(tc.rows)
			ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
				ctx := t.Context()
				require.NoError(t, os.Setenv("GOCCL_SHM_READ", tc.read[world.Rank()]))
				c := ccltest.Split(t, world, 0, world.Rank()) // which begins by what the environment is now
				for root := range n {
					for _, count := range []int{1000, 16_384, 33_000, 50_000, 1_500_000} {
						everyMove(ctx, t, c, count, root)
					}
				}
			}, ccltest.Processes(n))
		})
	}
}

// everyMove makes the calls that move data, with blocks of count elements.
func everyMove(ctx context.Context, t testing.TB, c *ccl.Comm, count, root int) {
	n, me := c.Size(), c.Rank()
	fill := func(x []int32, r, from int) []int32 {
		for i := range x {
			x[i] = int32(r*1_000_000 + (from+i)%99_991)
		}
		return x
	}
	check := func(what string, x []int32, want func(i int) (r, at int)) {
		for i, v := range x {
			r, at := want(i)
			if w := int32(r*1_000_000 + at%99_991); v != w {
				t.Fatalf("%s of %d, root %d: element %d is %d, not %d", what, count, root, i, v, w)
			}
		}
	}
	one := make([]int32, count)
	if me == root {
		fill(one, root, 0)
	}
	require.NoError(t, ccl.Broadcast(ctx, c, one, root))
	check("Broadcast", one, func(i int) (int, int) { return root, i })
	all := fill(make([]int32, n*count), me, 0)
	require.NoError(t, ccl.Scatter(ctx, c, one, all, root))
	check("Scatter", one, func(i int) (int, int) { return root, me*count + i })
	got := make([]int32, n*count)
	require.NoError(t, ccl.AllToAll(ctx, c, got, all))
	check("AllToAll", got, func(i int) (int, int) { return i / count, me*count + i%count })
	require.NoError(t, ccl.AllGather(ctx, c, got, all[:count]))
	check("AllGather", got, func(i int) (int, int) { return i / count, i % count })
	if me != root {
		require.NoError(t, ccl.Gather(ctx, c, nil, all[:count], root))
	} else {
		require.NoError(t, ccl.Gather(ctx, c, got, all[:count], root))
		check("Gather", got, func(i int) (int, int) { return i / count, i % count })
	}
	require.NoError(t, ccl.SendRecv(ctx, c, one, (me+n-1)%n, all[:count], (me+1)%n))
	check("SendRecv", one, func(i int) (int, int) { return (me + n - 1) % n, i })
}
