package algo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// large are placements that jobs of more than a few ranks keep without a table, and one that has one.
var large = []placement{
	{"blocks, the last shorter", func(n int) Topology { return place(n, func(r int) int { return r / 12 }) }},
	{"blocks of 4 and 2", func(n int) Topology { return place(n, func(r int) int { return r/6*2 + r%6/4 }) }},
	{"turns", func(n int) Topology { return place(n, func(r int) int { return r % 40 }) }},
	{"turns of one and some more", func(n int) Topology { return place(n, func(r int) int { return r % (n - 3) }) }},
	{"turns of three", func(n int) Topology { return place(n, func(r int) int { return r / 3 % 40 }) }},
	{"rows in turns", func(n int) Topology { return place(n, func(r int) int { return (r%90 + r/90*20) % 40 }) }},
	{"turns, then blocks", func(n int) Topology {
		return place(n, func(r int) int {
			if r < n/2 {
				return r % 50
			}
			return (r - n/2) / 4
		})
	}},
	{"no order", func(n int) Topology { return place(n, func(r int) int { return r * 7919 % 101 % 40 }) }},
}

// TestTopologies checks every placement against the definition of each query.
func TestTopologies(t *testing.T) {
	testTopologies(t, placements, 1, 2, 3, 7, 8, 12, 31, 64)
	testTopologies(t, large, 65, 121, 360, 601)
}

func testTopologies(t *testing.T, placements []placement, sizes ...int) {
	for _, p := range placements {
		for _, n := range sizes {
			t.Run(fmt.Sprintf("%s/%d", p.name, n), func(t *testing.T) {
				topo := p.of(n)
				require.Equal(t, n, topo.Size())
				pos, last := 0, -1
				for node := range topo.Nodes() {
					require.Positive(t, topo.Locals(node), "host %d is empty", node)
					require.True(t, topo.Rank(node, 0) > last || p.name == "ordered", "host %d begins before the one before", node)
					last = topo.Rank(node, 0)
					require.Equal(t, pos, firstPosition(topo, node), "host %d", node)
					before := -1
					for local := range topo.Locals(node) {
						r := topo.Rank(node, local)
						require.Equal(t, []int{node, local, pos}, []int{topo.Node(r), topo.Local(r), topo.Position(r)}, "rank %d", r)
						require.Greater(t, r, before)
						got, _ := topo.Run(pos, 1)
						require.Equal(t, []int{r, r}, []int{got, topo.At(pos)}, "position %d", pos)
						before = r
						pos++
					}
				}
				require.Equal(t, []int{n, n}, []int{pos, firstPosition(topo, topo.Nodes())}, "ranks on all hosts")
				for pos := range n {
					first, run := topo.Run(pos, n)
					_, part := topo.Run(pos, 2)
					require.Equal(t, min(run, 2), part, "position %d", pos)
					for i := range run {
						require.Equal(t, first+i, topo.At(pos+i), "position %d", pos+i)
					}
					if end := pos + run; end < n {
						require.NotEqual(t, first+run, topo.At(end), "the run at %d could be longer than %d", pos, run)
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
		{[]int{0, 0, 1}, "*algo.placed"},
		{[]int{0, 1, 0, 1}, "*algo.placed"},
		{nil, "*algo.placed"},
	} {
		topo := Placed(tc.nodeOf)
		if got := fmt.Sprintf("%#v", topo); got != tc.want && fmt.Sprintf("%T", topo) != tc.want {
			t.Errorf("%v: %s, want %s", tc.nodeOf, got, tc.want)
		}
		require.Equal(t, len(tc.nodeOf), topo.Size(), "%v", tc.nodeOf)
	}
}

// What large jobs keep of their placement: without a table where the ranks follow an order.
func TestPlacedKeepsATableOfNoOrder(t *testing.T) {
	for _, p := range large {
		topo, is := p.of(601).(*placed)
		require.True(t, is, "%s: %T", p.name, p.of(601))
		if table := topo.node != nil; table != (p.name == "no order") {
			t.Errorf("%s: a table: %v", p.name, table)
		}
		require.Equal(t, strings.HasPrefix(p.name, "blocks"), topo.stretches == nil && topo.node == nil, "%s: %d stretches", p.name, len(topo.stretches))
		if len(topo.stretches)*ranksAStretch > 601 {
			t.Errorf("%s: %d stretches of 601 ranks", p.name, len(topo.stretches))
		}
	}
}
