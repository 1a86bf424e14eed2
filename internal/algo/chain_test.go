package algo

import (
	"testing"

	"github.com/goccl/goccl/internal/op"
)

func TestChain(t *testing.T) {
	wantCosts(t, "chain", []costCase{
		// 8 pieces there and, a tick later, back.
		{op.AllReduce, Flat(2), 0, Cost{9, 16, 1, 1, 1}},
		{op.AllReduce, Flat(3), 0, Cost{11, 32, 2, 2, 2}},
		// Rank 0 of many sends its 8 and then waits for them to come back; ranks
		// between take a tick more each way.
		{op.AllReduce, Flat(100), 0, Cost{18, 32, 2, 2, 2}},
		{op.Reduce, Flat(5), 4, Cost{9, 16, 1, 1, 2}},
		{op.Reduce, Flat(5), 0, Cost{12, 16, 1, 1, 2}},
		// Ranks between receive all parts and then their own.
		{op.ReduceScatter, Flat(5), 0, Cost{6, 11, 1, 1.2, 4}},
	})
}

func TestChainSteps(t *testing.T) {
	for rank, want := range [][]Step{
		{to(1, 0, 1), to(1, 1, 2), both(to(1, 2, 3), from(2, 0, 1))},
		{add(0, 0, 1), both(to(2, 0, 1), add(0, 1, 2)), both(to(2, 1, 2), add(0, 2, 3)), both(to(2, 2, 3), from(2, 1, 2))},
		{add(1, 0, 1), both(to(0, 0, 1), add(1, 1, 2)), both(to(1, 1, 2), add(1, 2, 3))},
	} {
		wantSteps(t, build(t, "chain", op.ReduceScatter, Flat(3), 0)[rank], want...)
	}
}

// TestPipelineSkipsIdleTicks: two pieces at ticks 3 and 4, and again at 9 and 10.
func TestPipelineSkipsIdleTicks(t *testing.T) {
	s := pipeline(2, []flow{{peer: 7, start: 9, hi: 2}, {send: true, peer: 6, start: 3, hi: 2}})
	wantSteps(t, s, to(6, 0, 1), to(6, 1, 2), from(7, 0, 1), from(7, 1, 2))
}
