package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestHier(t *testing.T) {
	wantCosts(t, "hier", []costCase{
		{op.AllReduce, Blocks(4, 4), 0, Cost{6, 8, 4, 4, 4}},
		{op.AllReduce, Blocks(3, 2), 0, Cost{5, 6, 3, 3, 3}},
		{op.Barrier, Blocks(4, 4), 0, Cost{6, 8, 0, 0, 5}},
	})
}

// TestHierCrosses: only leaders talk between hosts, log2 of the hosts times each.
func TestHierCrosses(t *testing.T) {
	for _, k := range []op.Kind{op.AllReduce, op.Barrier} {
		for _, topo := range []Topology{Blocks(4, 4), place(16, func(r int) int { return r % 4 })} {
			got, _ := crossing(t, "hier", k, topo, 0)
			require.Equal(t, 4*2, got, "%s: messages between hosts", k)
		}
	}
}

// TestHierIsOtherwise: with one rank on each host, and with one host.
func TestHierIsOtherwise(t *testing.T) {
	for _, tc := range []struct {
		k    op.Kind
		topo Topology
		name string
	}{
		{op.AllReduce, Blocks(13, 1), "doubling"},
		{op.AllReduce, Flat(13), "tree"},
		{op.Barrier, Blocks(13, 1), "dissemination"},
		{op.Barrier, Flat(13), "tree"},
	} {
		want := build(t, tc.name, tc.k, tc.topo, 0)
		for r, s := range build(t, "hier", tc.k, tc.topo, 0) {
			require.Equal(t, steps(want[r]), steps(s), "%s on %d hosts, rank %d: not as %s", tc.k, tc.topo.Nodes(), r, tc.name)
		}
	}
}
