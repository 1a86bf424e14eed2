package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestRing(t *testing.T) {
	for _, n := range []int{2, 3, 8, 64} {
		share := float64(n-1) / float64(n)
		peers := min(n-1, 2)
		for _, topo := range []Topology{Flat(n), placements[4].of(n)} {
			wantCost(t, "ring", op.AllReduce, topo, 0, Cost{2 * (n - 1), 4 * (n - 1), 2 * share, 2 * share, peers})
			wantCost(t, "ring", op.ReduceScatter, topo, 0, Cost{n - 1, 2 * (n - 1), share, share, peers})
			wantCost(t, "ring", op.AllGather, topo, 0, Cost{n - 1, 2 * (n - 1), share, share, peers})
		}
	}
}

// TestRingEntersHostsOnce: in each step one message enters each host and one leaves.
func TestRingEntersHostsOnce(t *testing.T) {
	for _, p := range placements {
		topo := p.of(12)
		want := topo.Nodes() * 2 * 11
		if topo.Nodes() == 1 {
			want = 0
		}
		got, _ := crossing(t, "ring", op.AllReduce, topo, 0)
		require.Equal(t, want, got, "%s: messages between hosts", p.name)
	}
}

func TestRingSteps(t *testing.T) {
	wantSteps(t, build(t, "ring", op.AllReduce, Flat(3), 0)[1],
		both(to(2, 0, 1), add(0, 2, 3)),
		both(to(2, 2, 3), add(0, 1, 2)), // part 1 is complete
		both(to(2, 1, 2), from(0, 0, 1)),
		both(to(2, 0, 1), from(0, 2, 3)))
}
