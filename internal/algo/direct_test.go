package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestDirect(t *testing.T) {
	const n = 8
	share := 7.0 / 8
	for k, want := range map[op.Kind]Cost{
		op.Barrier:       {1, 14, 0, 0, 7},
		op.Broadcast:     {1, 7, 7, 1, 7},
		op.Reduce:        {1, 7, 1, 7, 7},
		op.AllReduce:     {2, 28, 2 * share, 2 * share, 7},
		op.ReduceScatter: {1, 14, share, share, 7},
		op.AllGather:     {1, 14, share, share, 7},
		op.Gather:        {1, 7, 1.0 / 8, share, 7},
		op.Scatter:       {1, 7, share, 1.0 / 8, 7},
		op.AllToAll:      {1, 14, share, share, 7},
	} {
		wantCost(t, "direct", k, Flat(n), 3, want)
	}
}

func TestOthers(t *testing.T) {
	for rank, want := range [][]int{{1, 2, 3}, {0, 2, 3}, {1, 0, 3}, {2, 1, 0}} {
		var got []int
		others(4, rank, func(peer int) { got = append(got, peer) })
		require.Equal(t, want, got, "rank %d", rank)
	}
}

// TestDirectSteps: every rank's contribution to part 1 comes straight to rank 1.
func TestDirectSteps(t *testing.T) {
	wantSteps(t, build(t, "direct", op.AllReduce, Flat(3), 0)[1],
		both(to(0, 0, 1), to(2, 2, 3), add(0, 1, 2), add(2, 1, 2)),
		both(to(0, 1, 2), to(2, 1, 2), from(0, 0, 1), from(2, 2, 3)))
}
