package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestDissemination(t *testing.T) {
	wantCosts(t, "dissemination", []costCase{
		{op.Barrier, Blocks(2, 1), 0, Cost{1, 2, 0, 0, 1}},
		{op.Barrier, Blocks(8, 1), 0, Cost{3, 6, 0, 0, 5}},
		{op.Barrier, Blocks(9, 1), 0, Cost{4, 8, 0, 0, 6}},
		{op.AllGather, Blocks(2, 1), 0, Cost{1, 2, 1.0 / 2, 1.0 / 2, 1}},
		{op.AllGather, Blocks(7, 1), 0, Cost{3, 8, 6.0 / 7, 6.0 / 7, 6}},
		{op.AllReduce, Blocks(7, 1), 0, Cost{6, 16, 12.0 / 7, 12.0 / 7, 6}},
		{op.ReduceScatter, Blocks(7, 1), 0, Cost{3, 8, 6.0 / 7, 6.0 / 7, 6}},
	})
	// n-1 parts and log n steps, rounded up, for every n.
	for n := 2; n <= 64; n++ {
		share := float64(n-1) / float64(n)
		for r := range n {
			s, err := Build("dissemination", op.ReduceScatter, Flat(n), r, 0)
			require.NoError(t, err)
			c := s.Cost()
			require.Equal(t, []any{log2(2*n - 1), share, share}, []any{c.Steps, c.Sent, c.Received}, "rank %d of %d", r, n)
		}
	}
}

func TestDisseminationSteps(t *testing.T) {
	wantSteps(t, build(t, "dissemination", op.AllGather, Flat(5), 0)[3],
		both(to(2, 3, 4), from(4, 4, 5)),
		both(to(1, 3, 5), from(0, 0, 2)),
		both(to(4, 3, 4), from(2, 2, 3)))
}
