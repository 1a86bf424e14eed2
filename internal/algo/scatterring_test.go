package algo

import (
	"testing"

	"github.com/goccl/goccl/internal/op"
)

func TestScatterRing(t *testing.T) {
	wantCosts(t, "scatter-ring", []costCase{
		// The root of 8 sends 7/8 down the tree and 7/8 around the ring; the head of
		// the upper half receives 4/8 and 7/8.
		{op.Broadcast, Blocks(8, 1), 3, Cost{10, 17, 14.0 / 8, 11.0 / 8, 4}},
		{op.Reduce, Blocks(8, 1), 3, Cost{10, 17, 11.0 / 8, 14.0 / 8, 4}},
	})
}

func TestScatterRingSteps(t *testing.T) {
	// Parts count from the root: 0 for rank 2, 1 for rank 0, 2 for rank 1.
	for rank, want := range [][]Step{
		{from(2, 1, 2), both(to(1, 1, 2), from(2, 0, 1)), both(to(1, 0, 1), from(2, 2, 3))},
		{from(2, 2, 3), both(to(2, 2, 3), from(0, 1, 2)), both(to(2, 1, 2), from(0, 0, 1))},
		{to(1, 2, 3), to(0, 1, 2), both(to(0, 0, 1), from(1, 2, 3)), both(to(0, 2, 3), from(1, 1, 2))},
	} {
		wantSteps(t, build(t, "scatter-ring", op.Broadcast, Flat(3), 2)[rank], want...)
	}
}
