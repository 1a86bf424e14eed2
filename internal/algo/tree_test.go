package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestTree(t *testing.T) {
	wantCosts(t, "tree", []costCase{
		// Of 8 ranks the root has 3 children, and no rank has more neighbours.
		{op.Broadcast, Blocks(8, 1), 0, Cost{3, 3, 3, 1, 3}},
		{op.Reduce, Blocks(8, 1), 0, Cost{3, 3, 1, 3, 3}},
		{op.AllReduce, Blocks(8, 1), 0, Cost{6, 6, 3, 3, 3}},
		{op.Scatter, Blocks(8, 1), 0, Cost{3, 3, 7.0 / 8, 4.0 / 8, 3}},
		{op.Gather, Blocks(8, 1), 0, Cost{3, 3, 4.0 / 8, 7.0 / 8, 3}},
		{op.Barrier, Blocks(8, 1), 0, Cost{6, 6, 0, 0, 3}},
		// Of 4 hosts of 4 the root has 2 children on other hosts and 2 on its own.
		{op.Broadcast, Blocks(4, 4), 0, Cost{4, 4, 4, 1, 4}},
		{op.Reduce, Blocks(4, 4), 0, Cost{4, 4, 1, 4, 4}},
		{op.Scatter, Blocks(4, 4), 0, Cost{4, 4, 15.0 / 16, 8.0 / 16, 4}},
		{op.Gather, Blocks(4, 4), 0, Cost{4, 4, 8.0 / 16, 15.0 / 16, 4}},
		// The same with ranks dealt out: the parts of a host are as many moves.
		{op.Scatter, place(16, func(r int) int { return r % 4 }), 0, Cost{4, 15, 15.0 / 16, 8.0 / 16, 4}},
	})
}

// TestTreeCrossesLeast: a message for each host but the root's is the least there
// can be, whichever rank is root.
func TestTreeCrossesLeast(t *testing.T) {
	for _, p := range placements {
		for _, n := range []int{2, 13, 32} {
			topo := p.of(n)
			least := topo.Nodes() - 1
			for root := range n {
				for k, want := range map[op.Kind]int{op.Broadcast: least, op.Reduce: least, op.AllReduce: 2 * least, op.Barrier: 2 * least} {
					got, _ := crossing(t, "tree", k, topo, root)
					require.Equal(t, want, got, "%s of %d, %s, root %d: messages between hosts", p.name, n, k, root)
				}
			}
		}
	}
}

// TestTreeMovesRanges: where ranks are numbered host by host, a subtree's parts are
// one range, or two where it wraps around.
func TestTreeMovesRanges(t *testing.T) {
	for _, topo := range []Topology{Blocks(64, 1), Blocks(8, 8), placements[3].of(64)} {
		for root := range 64 {
			for _, s := range build(t, "tree", op.Gather, topo, root) {
				for _, st := range steps(s) {
					if len(st.Send) > 2 || len(st.Recv) > 2 {
						t.Fatalf("root %d: a step of %d sends and %d receives", root, len(st.Send), len(st.Recv))
					}
				}
			}
		}
	}
}

func TestTreeSteps(t *testing.T) {
	// Hosts {0 1} {2 3} {4 5}, root 3: it leads its host, and the subtree of host 2
	// is hosts 2 and 0.
	topo := Blocks(3, 2)
	for rank, want := range [][]Step{
		{from(3, 0, 2), to(1, 1, 2)},
		{from(0, 1, 2)},
		{from(3, 2, 3)},
		{to(0, 0, 2), to(4, 4, 6), to(2, 2, 3)},
		{from(3, 4, 6), to(5, 5, 6)},
		{from(4, 5, 6)},
	} {
		wantSteps(t, build(t, "tree", op.Scatter, topo, 3)[rank], want...)
	}
}

// A roll call lets no rank go before all have come, in four steps. A rank has as many messages in it as neighbors in a tree of hosts and in
// one of a host's ranks, twice, and of those that wait for each other a logarithm.
func TestRollCall(t *testing.T) {
	for _, p := range placements {
		for _, n := range []int{2, 3, 5, 8, 13, 33, 64} {
			topo, ranks := p.of(n), make([]Schedule, n)
			for r := range ranks {
				ranks[r] = RollCall(topo, r)
				require.LessOrEqual(t, ranks[r].Steps, 4)
			}
			require.NoError(t, prove(op.Barrier, 0, ranks, false), "%s of %d", p.name, n)
		}
	}
	for _, tc := range []struct {
		hosts, locals, messages, depth int
	}{{2, 1, 2, 2}, {8, 1, 6, 6}, {64, 1, 12, 12}, {8, 8, 12, 12}, {1024, 1, 20, 20}, {1024, 64, 32, 32}} {
		topo := Blocks(tc.hosts, tc.locals)
		most := 0
		for r := range topo.Size() {
			most = max(most, RollCall(topo, r).Cost().Messages)
		}
		require.Equal(t, tc.messages, most, "messages of a rank, %d hosts of %d", tc.hosts, tc.locals)
		depth := 0
		var st Step
		for r := topo.Size() - 1; r != RollRoot(topo); depth++ { // the last rank is the deepest
			s := RollCall(topo, r)
			s.At(s.Steps-1, &st)
			for k := range s.Steps {
				if s.At(k, &st); len(st.Send) == 1 && st.Send[0].Peer < r {
					break
				}
			}
			r = st.Send[0].Peer
		}
		require.Equal(t, tc.depth, 2*depth, "messages after each other, %d hosts of %d", tc.hosts, tc.locals)
	}
}
