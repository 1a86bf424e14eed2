package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A job of so many ranks in turns on 16 hosts keeps no table of where they are, and a Comm of rows of them none of its members.
// All ranks reach each other, and each hears which number the others have.
func TestManyRanksInTurns(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes the connections of so many ranks take ten times as long")
	}
	const n, row = 80, 20
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		ctx, r := t.Context(), c.Rank()
		rows, err := c.Split(ctx, r/row%2, r) // every other row
		require.NoError(t, err)
		defer rows.Close()
		var mine []int // the ranks of the world that it has
		for w := range n {
			if w/row%2 == r/row%2 {
				mine = append(mine, w)
			}
		}
		all := make([]int, n)
		for w := range all {
			all[w] = w
		}
		for _, at := range []struct {
			c    *ccl.Comm
			want []int
		}{{c, all}, {rows, mine}} {
			size := at.c.Size()
			require.Len(t, at.want, size)
			got := make([]int, size)
			require.NoError(t, ccl.AllGather(ctx, at.c, got, []int{r}))
			require.Equal(t, at.want, got)
			// From the last rank on, so that none is the first of its host.
			var whole []int
			if at.c.Rank() == size-1 {
				whole = at.want
			}
			one := []int{-1}
			require.NoError(t, ccl.Scatter(ctx, at.c, one, whole, size-1))
			require.Equal(t, []int{r}, one)
			right, left := (at.c.Rank()+1)%size, (at.c.Rank()+size-1)%size
			require.NoError(t, ccl.SendRecv(ctx, at.c, one, left, []int{r}, right))
			require.Equal(t, at.want[left], one[0])
		}
	}, ccltest.RoundRobin(16))
}
