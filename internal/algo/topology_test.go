package algo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTopologies checks every placement against the definition of each query.
func TestTopologies(t *testing.T) {
	for _, p := range placements {
		for _, n := range []int{1, 2, 3, 7, 8, 12, 31, 64} {
			t.Run(fmt.Sprintf("%s/%d", p.name, n), func(t *testing.T) {
				topo := p.of(n)
				require.Equal(t, n, topo.Size())
				pos, last := 0, -1
				for node := range topo.Nodes() {
					require.Positive(t, topo.Locals(node), "host %d is empty", node)
					require.Greater(t, topo.Rank(node, 0), last, "host %d begins before the one before", node)
					last = topo.Rank(node, 0)
					require.Equal(t, pos, firstPosition(topo, node), "host %d", node)
					before := -1
					for local := range topo.Locals(node) {
						r := topo.Rank(node, local)
						require.Equal(t, []int{node, local, pos}, []int{topo.Node(r), topo.Local(r), topo.Position(r)}, "rank %d", r)
						require.Greater(t, r, before)
						got, _ := topo.Run(pos)
						require.Equal(t, r, got, "position %d", pos)
						before = r
						pos++
					}
				}
				require.Equal(t, []int{n, n}, []int{pos, firstPosition(topo, topo.Nodes())}, "ranks on all hosts")
				for pos := range n {
					first, run := topo.Run(pos)
					for i := range run {
						got, _ := topo.Run(pos + i)
						require.Equal(t, first+i, got, "position %d", pos+i)
					}
					if end := pos + run; end < n {
						got, _ := topo.Run(end)
						require.NotEqual(t, first+run, got, "the run at %d could be longer than %d", pos, run)
					}
				}
			})
		}
	}
}

func TestPlacedKeepsNoTableOfBlocks(t *testing.T) {
	for _, tc := range []struct {
		nodeOf []int
		want   string
	}{
		{[]int{0, 0, 0, 1, 1, 1}, "algo.blocks{nodes:2, per:3}"},
		{[]int{7, 7, -1, -1}, "algo.blocks{nodes:2, per:2}"},
		{[]int{3, 1, 2}, "algo.blocks{nodes:3, per:1}"},
		{[]int{5}, "algo.blocks{nodes:1, per:1}"},
		{[]int{0, 0, 1}, "algo.placed"},
		{[]int{0, 1, 0, 1}, "algo.placed"},
		{nil, "algo.placed"},
	} {
		topo := Placed(tc.nodeOf)
		if got := fmt.Sprintf("%#v", topo); got != tc.want && fmt.Sprintf("%T", topo) != tc.want {
			t.Errorf("%v: %s, want %s", tc.nodeOf, got, tc.want)
		}
		require.Equal(t, len(tc.nodeOf), topo.Size(), "%v", tc.nodeOf)
	}
}
