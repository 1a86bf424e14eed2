package algo

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// mostCost is the most that algorithm name costs any rank.
func mostCost(name string, k op.Kind, t Topology, root int) (Cost, error) {
	var most Cost
	for r := range t.Size() {
		s, err := Build(name, k, t, r, root)
		if err != nil {
			return Cost{}, err
		}
		most = most.Most(s.Cost())
	}
	return most, nil
}

// wantCost checks the most that any rank pays.
func wantCost(t *testing.T, name string, k op.Kind, topo Topology, root int, want Cost) {
	t.Helper()
	got, err := mostCost(name, k, topo, root)
	require.NoError(t, err)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if got.Steps != want.Steps || got.Messages != want.Messages || got.Peers != want.Peers ||
		!near(got.Sent, want.Sent) || !near(got.Received, want.Received) {
		t.Errorf("%s %s of %d ranks on %d hosts:\ngot  %v\nwant %v", name, k, topo.Size(), topo.Nodes(), got, want)
	}
}

// costCase is what a schedule of k costs at most on a rank.
type costCase struct {
	k    op.Kind
	topo Topology
	root int
	want Cost
}

func wantCosts(t *testing.T, name string, cases []costCase) {
	t.Helper()
	for _, tc := range cases {
		wantCost(t, name, tc.k, tc.topo, tc.root, tc.want)
	}
}

// crossing counts the messages that pass between hosts, and the parts in them.
func crossing(t *testing.T, name string, k op.Kind, topo Topology, root int) (messages, parts int) {
	t.Helper()
	for r, s := range build(t, name, k, topo, root) {
		for _, st := range steps(s) {
			for _, m := range st.Send {
				if topo.Node(m.Peer) != topo.Node(r) {
					messages++
					parts += m.Hi - m.Lo
				}
			}
		}
	}
	return messages, parts
}

func TestCost(t *testing.T) {
	s := on(4, both(to(1, 0, 2), to(2, 0, 4), from(1, 3, 4)), from(1, 0, 2), to(1, 0, 0))
	want := Cost{Steps: 3, Messages: 5, Sent: 1.5, Received: 0.75, Peers: 2}
	require.Equal(t, want, s.Cost())
	require.Zero(t, (Schedule{}).Cost())
	require.Equal(t, "3 steps, 5 messages, sends 1.5 and receives 0.75 of the vector, 2 peers", want.String())
	require.Equal(t, Cost{2, 9, 1, 3, 5}, Cost{1, 9, 0.5, 3, 4}.Most(Cost{2, 8, 1, 2, 5}))
	_, err := mostCost("rnig", op.AllReduce, Flat(2), 0)
	require.Error(t, err)
}

// TestConnections is the promise of how many peers a rank talks to: 2 in a ring,
// O(log n) elsewhere, whatever the placement.
func TestConnections(t *testing.T) {
	for _, n := range []int{64, 100, 256, 1000, 1024} {
		log := log2(n-1) + 1 // rounded up
		for _, tc := range []struct {
			name  string
			kinds []op.Kind
			most  int
		}{
			{"ring", []op.Kind{op.AllReduce, op.ReduceScatter, op.AllGather}, 2},
			{"doubling", []op.Kind{op.AllReduce}, log},
			{"halving", []op.Kind{op.AllReduce}, log},
			{"dissemination", []op.Kind{op.Barrier, op.AllReduce, op.ReduceScatter, op.AllGather}, 2 * log},
			{"tree", []op.Kind{op.Barrier, op.Broadcast, op.Reduce, op.AllReduce, op.Gather, op.Scatter}, log + 1},
			{"hier", []op.Kind{op.Barrier, op.AllReduce}, 2 * log},
			{"hier-ring", []op.Kind{op.AllReduce}, 4},
			{"scatter-ring", []op.Kind{op.Broadcast, op.Reduce}, log + 2},
			{"chain", []op.Kind{op.AllReduce}, 2},
			{"chain", []op.Kind{op.Reduce}, 3},
		} {
			for _, k := range tc.kinds {
				for _, topo := range []Topology{Blocks(n, 1), Blocks(n/4, 4), place(n, func(r int) int { return r % 10 })} {
					t.Run(fmt.Sprintf("%s/%s/%d/%d", tc.name, k, n, topo.Nodes()), func(t *testing.T) {
						most := 0
						// Rings of many ranks have as many steps: a few ranks will do.
						stride := 1
						if tc.most <= 3 || tc.name == "scatter-ring" {
							stride = n / 4
						}
						for r := 0; r < n; r += stride {
							s, err := Build(tc.name, k, topo, r, n/3)
							require.NoError(t, err)
							most = max(most, s.Cost().Peers)
						}
						require.LessOrEqual(t, most, tc.most, "peers")
					})
				}
			}
		}
	}
}
