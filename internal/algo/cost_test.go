package algo

import (
	"fmt"
	"math"
	"testing"
)

// wantCost checks the most that any rank pays.
func wantCost(t *testing.T, name string, k Kind, topo Topology, root int, want Cost) {
	t.Helper()
	got, err := MostCost(name, k, topo, root)
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if got.Steps != want.Steps || got.Messages != want.Messages || got.Peers != want.Peers ||
		!near(got.Sent, want.Sent) || !near(got.Received, want.Received) {
		t.Errorf("%s %s of %d ranks on %d hosts:\ngot  %v\nwant %v", name, k, topo.Size(), topo.Nodes(), got, want)
	}
}

// crossing counts the messages that pass between hosts, and the parts in them.
func crossing(t *testing.T, name string, k Kind, topo Topology, root int) (messages, parts int) {
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
	if got := s.Cost(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Schedule{}).Cost(); got != (Cost{}) {
		t.Errorf("an empty schedule: %v", got)
	}
	if got, want := want.String(), "3 steps, 5 messages, sends 1.5 and receives 0.75 of the vector, 2 peers"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a, b := Cost{1, 9, 0.5, 3, 4}, Cost{2, 8, 1, 2, 5}
	if got, want := a.Most(b), (Cost{2, 9, 1, 3, 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := MostCost("rnig", AllReduce, Flat(2), 0); err == nil {
		t.Error("no error for an unknown algorithm")
	}
}

// TestConnections is the promise of how many peers a rank talks to: 2 in a ring,
// O(log n) elsewhere, whatever the placement.
func TestConnections(t *testing.T) {
	for _, n := range []int{64, 100, 256, 1000, 1024} {
		log := log2(n-1) + 1 // rounded up
		for _, tc := range []struct {
			name  string
			kinds []Kind
			most  int
		}{
			{"ring", []Kind{AllReduce, ReduceScatter, AllGather}, 2},
			{"doubling", []Kind{AllReduce}, log},
			{"halving", []Kind{AllReduce}, log},
			{"dissemination", []Kind{Barrier, AllReduce, ReduceScatter, AllGather}, 2 * log},
			{"tree", []Kind{Barrier, Broadcast, Reduce, AllReduce, Gather, Scatter}, log + 1},
			{"hier", []Kind{Barrier, AllReduce}, 2 * log},
			{"hier-ring", []Kind{AllReduce}, 4},
			{"scatter-ring", []Kind{Broadcast, Reduce}, log + 2},
			{"chain", []Kind{AllReduce}, 2},
			{"chain", []Kind{Reduce}, 3},
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
							if err != nil {
								t.Fatal(err)
							}
							most = max(most, s.Cost().Peers)
						}
						if most > tc.most {
							t.Errorf("%d peers, promised at most %d", most, tc.most)
						}
					})
				}
			}
		}
	}
}
