package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestHierRing(t *testing.T) {
	wantCosts(t, "hier-ring", []costCase{
		{op.AllReduce, Blocks(8, 1), 0, Cost{14, 28, 1.75, 1.75, 2}}, // the ring between hosts
		{op.AllReduce, Blocks(1, 8), 0, Cost{14, 28, 1.75, 1.75, 2}}, // that inside a host
		{op.AllReduce, Blocks(2, 2), 0, Cost{4, 8, 1.5, 1.5, 2}},     // half of it inside, a quarter between, and back
		{op.AllReduce, Blocks(128, 8), 0, Cost{268, 536, 1.998046875, 1.998046875, 4}},
		{op.AllReduce, place(8, func(r int) int { return r % 2 }), 0, Cost{8, 16, 1.75, 1.75, 3}},
		{op.AllReduce, place(5, func(r int) int { return r % 2 }), 0, Cost{8, 16, 1.6, 1.6, 2}}, // uneven: one ring
	})
	// Between 4 hosts of 2 pass 2 x 3/4 of the vector for each, in parts of an eighth; one ring moves 2 x 7/8.
	_, parts := crossing(t, "hier-ring", op.AllReduce, Blocks(4, 2), 0)
	require.Equal(t, 4*8*6/4, parts)
	_, parts = crossing(t, "ring", op.AllReduce, Blocks(4, 2), 0)
	require.Equal(t, 4*2*7, parts)
}

func TestHierRingSteps(t *testing.T) {
	// Rank 3 of two hosts with two ranks has the upper half of the vector, and of that the last quarter.
	s, err := Build("hier-ring", op.AllReduce, Blocks(2, 2), 3, 0)
	require.NoError(t, err)
	reduced := func(st Step) Step {
		st.Recv[0].Reduce = true
		return st
	}
	wantSteps(t, s,
		reduced(both(to(2, 0, 2), from(2, 2, 4))),
		reduced(both(to(1, 2, 3), from(1, 3, 4))),
		both(to(1, 3, 4), from(1, 2, 3)),
		both(to(2, 2, 4), from(2, 0, 2)))
}
