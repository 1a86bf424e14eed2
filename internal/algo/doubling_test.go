package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestDoubling(t *testing.T) {
	wantCosts(t, "doubling", []costCase{
		{op.AllReduce, Blocks(2, 1), 0, Cost{1, 2, 1, 1, 1}},
		{op.AllReduce, Blocks(4, 1), 0, Cost{2, 4, 2, 2, 2}},
		{op.AllReduce, Blocks(64, 1), 0, Cost{6, 12, 6, 6, 6}},
		// The ranks folded into carry one more each way.
		{op.AllReduce, Blocks(3, 1), 0, Cost{3, 4, 2, 2, 2}},
		{op.AllReduce, Blocks(5, 1), 0, Cost{4, 6, 3, 3, 3}},
		{op.AllReduce, Blocks(6, 1), 0, Cost{4, 6, 3, 3, 3}},
		{op.AllReduce, Blocks(63, 1), 0, Cost{7, 12, 6, 6, 6}},
	})
}

func TestDoublingSteps(t *testing.T) {
	swap := func(peer int) Step { return both(to(peer, 0, 1), add(peer, 0, 1)) }
	for rank, want := range [][]Step{
		{to(1, 0, 1), from(1, 0, 1)},
		{add(0, 0, 1), swap(3), swap(4), to(0, 0, 1)},
		{to(3, 0, 1), from(3, 0, 1)},
		{add(2, 0, 1), swap(1), swap(5), to(2, 0, 1)},
		{swap(5), swap(1)},
		{swap(4), swap(3)},
	} {
		wantSteps(t, build(t, "doubling", op.AllReduce, Flat(6), 0)[rank], want...)
	}
}

func TestLog2(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 7: 2, 8: 3, 1023: 9, 1024: 10} {
		require.Equal(t, want, log2(n), "log2(%d)", n)
	}
}
