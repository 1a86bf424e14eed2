package algo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/race"
)

// A placement makes a topology of n ranks.
type placement struct {
	name string
	of   func(n int) Topology
}

var placements = []placement{
	{"flat", Flat},
	{"each", func(n int) Topology { return Blocks(n, 1) }},
	{"blocks", func(n int) Topology {
		// The largest divisor up to 8 is the ranks of a host.
		for per := min(8, n); ; per-- {
			if n%per == 0 {
				return Blocks(n/per, per)
			}
		}
	}},
	{"uneven", func(n int) Topology {
		// Hosts of 1, 2, 3, 4 ranks and so on.
		return place(n, func(r int) int {
			node := 0
			for ; r > node; node++ {
				r -= node + 1
			}
			return node
		})
	}},
	{"robin", func(n int) Topology { return place(n, func(r int) int { return r % min(n, 3) }) }},
	{"robin7", func(n int) Topology { return place(n, func(r int) int { return r % min(n, 7) }) }},
	{"mixed", func(n int) Topology { return place(n, func(r int) int { return r * r % 11 / 2 }) }},
	{"ordered", func(n int) Topology {
		t := place(n, func(r int) int { return r * r % 11 / 2 })
		hosts := make([]int, t.Nodes())
		for i := range hosts { // backwards, but for the first
			hosts[i] = (len(hosts) - i) % len(hosts)
		}
		if len(hosts) > 1 { // nor is rank 0's the first
			hosts[0], hosts[1] = hosts[1], hosts[0]
		}
		return Ordered(t, hosts)
	}},
}

func place(n int, node func(rank int) int) Topology {
	nodeOf := make([]int, n)
	for r := range nodeOf {
		nodeOf[r] = node(r)
	}
	return Placed(nodeOf)
}

// brief reports whether to prove a sample only. Schedules start no goroutines, so
// the race detector, which makes proofs ten times as long, gets the sample.
func brief() bool { return testing.Short() || race.Enabled }

// roots is the roots to prove: all there are, on two placements at any size and on
// the others while there are few; three otherwise.
func roots(k op.Kind, p placement, n int) []int {
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	switch {
	case !k.Rooted():
		return all[:1]
	case n <= 6 || !brief() && (n <= 24 || p.name == "each" || p.name == "uneven"):
		return all
	}
	return []int{0, n / 3, n - 1}
}

// TestEveryAlgorithmWithoutTable is the proof for placements that only jobs of more than a few ranks keep without a table.
func TestEveryAlgorithmWithoutTable(t *testing.T) {
	const n = 80
	some := large
	if brief() {
		some = large[1:4]
	}
	for _, k := range collectives {
		for _, name := range Names(k) {
			for _, p := range some {
				require.NoError(t, Check(name, k, p.of(n), n/3), "%s/%s/%s", k, name, p.name)
			}
		}
	}
}

// TestEveryAlgorithm is the proof of every algorithm for every kind that it does,
// 1 to 64 ranks, every root and every placement.
func TestEveryAlgorithm(t *testing.T) {
	for _, k := range collectives {
		for _, name := range Names(k) {
			for _, p := range placements {
				t.Run(fmt.Sprintf("%s/%s/%s", k, name, p.name), func(t *testing.T) {
					for n := 1; n <= 64; n++ {
						if brief() && n > 20 && n < 63 && n != 32 && n != 48 {
							continue
						}
						topo := p.of(n)
						for _, root := range roots(k, p, n) {
							require.NoError(t, Check(name, k, topo, root))
						}
					}
				})
			}
		}
	}
}

// TestLargeJobs proves what is used between many ranks beyond the 64 of every n.
func TestLargeJobs(t *testing.T) {
	sizes := []int{100, 256}
	if brief() {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		for _, k := range collectives {
			for _, name := range Names(k) {
				for _, topo := range []Topology{Blocks(n, 1), Blocks(n/4, 4)} {
					require.NoError(t, Check(name, k, topo, n/3))
				}
			}
		}
	}
}

// A mutation is a fault in the schedule of one rank.
type mutation struct {
	name string
	make func(s Schedule, n int) Schedule
}

var mutations = []mutation{
	{"swapped part", func(s Schedule, _ int) Schedule {
		// What was to be part 0 is part 1, and so on, in the last step.
		return rewrite(s, func(k int, st *Step) {
			if k == s.Steps-1 {
				for _, ms := range [2][]Move{st.Send, st.Recv} {
					for i := range ms {
						ms[i].Lo, ms[i].Hi = ms[i].Lo^1, ms[i].Lo^1+1
					}
				}
			}
		})
	}},
	{"skipped tail", func(s Schedule, _ int) Schedule {
		s.Steps--
		return s
	}},
	{"skipped head", func(s Schedule, _ int) Schedule {
		at := s.at
		s.Steps--
		s.at = func(k int, st *Step) { at(k+1, st) }
		return s
	}},
	{"dropped move", func(s Schedule, _ int) Schedule {
		return rewrite(s, func(k int, st *Step) {
			if k != s.Steps/2 {
				return
			}
			if len(st.Recv) > 0 {
				st.Recv = st.Recv[1:]
			} else {
				st.Send = st.Send[1:]
			}
		})
	}},
	{"one step twice", func(s Schedule, _ int) Schedule {
		at := s.at
		s.Steps++
		s.at = func(k int, st *Step) { at(max(k-1, 0), st) }
		return s
	}},
	{"wrong peer", func(s Schedule, n int) Schedule {
		return rewrite(s, func(k int, st *Step) {
			if k == 0 {
				for _, ms := range [2][]Move{st.Send, st.Recv} {
					for i := range ms {
						ms[i].Peer = (ms[i].Peer + 1) % n
					}
				}
			}
		})
	}},
}

// rewrite changes steps as change says.
func rewrite(s Schedule, change func(k int, st *Step)) Schedule {
	at := s.at
	s.at = func(k int, st *Step) {
		at(k, st)
		change(k, st)
	}
	return s
}

// build is the schedules of all ranks.
func build(t *testing.T, name string, k op.Kind, topo Topology, root int) []Schedule {
	t.Helper()
	ranks := make([]Schedule, topo.Size())
	for r := range ranks {
		s, err := Build(name, k, topo, r, root)
		require.NoError(t, err)
		ranks[r] = s
	}
	return ranks
}

// TestMutationsAreCaught breaks the schedule of each rank in turn.
func TestMutationsAreCaught(t *testing.T) {
	for _, k := range collectives {
		for _, name := range Names(k) {
			for _, n := range []int{2, 5, 8} {
				for _, m := range mutations {
					if m.name == "swapped part" && k == op.Barrier {
						continue // a barrier has no parts
					}
					t.Run(fmt.Sprintf("%s/%s/%d/%s", k, name, n, m.name), func(t *testing.T) {
						for r := range n {
							ranks := build(t, name, k, Blocks(n, 1), n-1)
							ranks[r] = m.make(ranks[r], n)
							require.Error(t, prove(k, n-1, ranks, name == "chain"), "on rank %d it was not noticed", r)
						}
					})
				}
			}
		}
	}
}

// on is a schedule of the given steps.
func on(parts int, steps ...Step) Schedule {
	return Schedule{Parts: parts, Steps: len(steps), at: func(k int, st *Step) {
		st.Send = append(st.Send, steps[k].Send...)
		st.Recv = append(st.Recv, steps[k].Recv...)
	}}
}

// to and from and add are steps of one move.
func to(peer, lo, hi int) Step   { return Step{Send: []Move{{Peer: peer, Lo: lo, Hi: hi}}} }
func from(peer, lo, hi int) Step { return Step{Recv: []Move{{Peer: peer, Lo: lo, Hi: hi}}} }
func add(peer, lo, hi int) Step {
	return Step{Recv: []Move{{Peer: peer, Lo: lo, Hi: hi, Reduce: true}}}
}

// both is one step of all the moves of steps.
func both(steps ...Step) Step {
	var st Step
	for _, s := range steps {
		st.Send = append(st.Send, s.Send...)
		st.Recv = append(st.Recv, s.Recv...)
	}
	return st
}

// swapping is s, saying so.
func swapping(s Schedule) Schedule {
	s.Swap = true
	return s
}

func TestWhatCheckSays(t *testing.T) {
	swap := func(r int) Step { return both(to(1-r, 0, 1), add(1-r, 0, 1)) }
	for _, tc := range []struct {
		name string
		kind op.Kind
		of   []Schedule
		left bool
		want string // "" if it is right
	}{
		{"a swap", op.AllReduce, []Schedule{swapping(on(1, swap(0))), swapping(on(1, swap(1)))}, true, ""},
		{"a swap unsaid", op.AllReduce, []Schedule{on(1, swap(0)), on(1, swap(1))}, false,
			"rank 1, step 0 of 1: receives part 0 from rank 0 while it sends that part"},
		{"replacing what is sent", op.Broadcast, []Schedule{on(1, both(to(1, 0, 1), from(1, 0, 1))), on(1, both(from(0, 0, 1), to(0, 0, 1)))}, false,
			"rank 1, step 0 of 1: sends part 0 to rank 0, but does not hold it"},
		{"replacing what is sent, held", op.AllReduce, []Schedule{swapping(on(1, both(to(1, 0, 1), from(1, 0, 1)))), swapping(on(1, swap(1)))}, false,
			"rank 0, step 0 of 1: receives part 0 from rank 1 while it sends that part"},
		{"both send first", op.AllReduce, []Schedule{on(1, to(1, 0, 1), add(1, 0, 1)), on(1, to(0, 0, 1), add(0, 0, 1))}, false,
			"rank 0 is stuck in step 0: it sends {Peer:1 Lo:0 Hi:1 Reduce:false}, but rank 1 is in step 0"},
		{"nobody sends", op.Broadcast, []Schedule{on(1), on(1, from(0, 0, 1))}, false,
			"rank 1 is stuck in step 0: it receives {Peer:0 Lo:0 Hi:1 Reduce:false}, but rank 0 has finished"},
		{"nobody receives", op.Reduce, []Schedule{on(1), on(1, to(0, 0, 1))}, false,
			"rank 1 is stuck in step 0: it sends {Peer:0 Lo:0 Hi:1 Reduce:false}, but rank 0 has finished"},
		{"nothing happens", op.Reduce, []Schedule{on(1), on(1)}, false,
			"part 0 on rank 0 is 0: rank 1's contribution is missing"},
		{"twice", op.Reduce, []Schedule{on(1, add(1, 0, 1), add(1, 0, 1)), on(1, to(0, 0, 1), to(0, 0, 1))}, false,
			"part 0 on rank 0 is ((0+1)+1): rank 1's contribution is in it twice"},
		{"other parts", op.Reduce, []Schedule{on(2, add(1, 0, 1)), on(2, to(0, 1, 2))}, false,
			"rank 0, step 0 of 1: rank 1 sends parts [1,2) to rank 0, which receives them as [0,1)"},
		{"half the parts", op.Broadcast, []Schedule{on(2, to(1, 0, 1)), on(2, from(0, 0, 1))}, false,
			"rank 1 ends without part 1"},
		{"not for all", op.AllReduce, []Schedule{on(1, add(1, 0, 1)), on(1, to(0, 0, 1))}, false,
			"part 0 is 1 on rank 1 but (0+1) on rank 0"},
		{"parts differ", op.Broadcast, []Schedule{on(1, to(1, 0, 1)), on(2, from(0, 0, 1))}, false,
			"rank 1 has 2 parts, rank 0 has 1"},
		{"parts that are not ranks", op.Gather, []Schedule{on(3), on(3)}, false, "3 parts"},
		{"an empty message", op.Broadcast, []Schedule{on(1, to(1, 1, 1)), on(1, from(0, 1, 1))}, false,
			"rank 1, step 0 of 1: a message of 0 parts in a broadcast"},
		{"a part too far", op.Broadcast, []Schedule{on(1, to(1, 0, 2)), on(1, from(0, 0, 2))}, false,
			"rank 1, step 0 of 1: a message of parts [0,2) of 1"},
		{"itself", op.Broadcast, []Schedule{on(1, to(0, 0, 1)), on(1)}, false,
			"rank 0, step 0 of 1: a message to or from rank 0"},
		{"reducing a broadcast", op.Broadcast, []Schedule{on(1, to(1, 0, 1)), on(1, add(0, 0, 1))}, false,
			"rank 1, step 0 of 1: reduces in a broadcast"},
		{"a reducing send", op.Reduce, []Schedule{on(1, add(1, 0, 1)), on(1, Step{Send: []Move{{Peer: 0, Hi: 1, Reduce: true}}})}, false,
			"rank 1, step 0 of 1: a send to rank 0 that reduces"},
		{"two at once", op.Reduce, []Schedule{on(1, both(add(1, 0, 1), from(1, 0, 1))), on(1, both(to(0, 0, 1), to(0, 0, 1)))}, false,
			"rank 0, step 0 of 1: receives part 0 from rank 1 and from another rank"},
		{"an empty step", op.Broadcast, []Schedule{on(1, Step{}, to(1, 0, 1)), on(1, from(0, 0, 1))}, false,
			"rank 0, step 0 of 2: does nothing"},
		{"a silent barrier", op.Barrier, []Schedule{on(1, to(1, 0, 0)), on(1, from(0, 0, 0))}, false,
			"rank 0 ends without knowing that rank 1 is there"},
		{"someone else's block", op.AllToAll, []Schedule{on(2, to(1, 0, 1)), on(2, from(0, 0, 1))}, false,
			"rank 0, step 0 of 1: {Peer:1 Lo:0 Hi:1 Reduce:false} is no block"},
		{"a block twice", op.AllToAll, []Schedule{on(2, to(1, 1, 2), to(1, 1, 2)), on(2, from(0, 0, 1), from(0, 0, 1))}, false,
			"rank 1, step 1 of 2: the block of rank 0 reaches rank 1 a second time"},
		{"wrapped ranges in order", op.Gather, []Schedule{on(3, both(from(1, 1, 2), from(2, 2, 3))), on(3, to(0, 1, 2)), on(3, to(0, 2, 3))}, false, ""},
		{"from the left", op.Reduce, []Schedule{on(1, add(1, 0, 1), add(2, 0, 1)), on(1, to(0, 0, 1)), on(1, to(0, 0, 1))}, true, ""},
		{"from the right", op.Reduce, []Schedule{on(1, add(1, 0, 1)), on(1, add(2, 0, 1), to(0, 0, 1)), on(1, to(1, 0, 1))}, true,
			"part 0 on rank 0 is (0+(1+2)), not the fold from the left"},
		{"uneven", op.Reduce, []Schedule{on(2, both(add(1, 0, 2), add(2, 1, 2))), on(2, add(2, 0, 1), to(0, 0, 2)), on(2, both(to(1, 0, 1), to(0, 1, 2)))}, false,
			"rank 1, step 1 of 2: a message to or from rank 0 has part 0 of 2 contributions and part 1 of 1"},
		{"a wrong part", op.Scatter, []Schedule{on(2, to(1, 0, 1)), on(2, from(0, 0, 1))}, false,
			"rank 1 ends without part 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := prove(tc.kind, 0, tc.of, tc.left); tc.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.want)
			}
		})
	}
}

func TestCheckNamesTheCase(t *testing.T) {
	require.EqualError(t, Check("ring", op.Broadcast, Flat(4), 0), `algo: "ring": no such algorithm for broadcast; there are tree, scatter-ring, direct`)
	require.EqualError(t, Check("ring", op.AllReduce, Flat(0), 0), "algo: ring allreduce: a topology of no ranks")
	ranks := build(t, "ring", op.AllReduce, Flat(4), 0)
	ranks[2].Steps--
	require.ErrorContains(t, prove(op.AllReduce, 0, ranks, false), "rank 2 has finished")
}

// TestLeavesInOrder checks what direct promises: contributions stay in rank order.
func TestLeavesInOrder(t *testing.T) {
	for root := range 5 {
		p, err := newProof(op.Reduce, root, build(t, "direct", op.Reduce, Flat(5), root))
		require.NoError(t, err)
		require.NoError(t, p.run())
		text := p.terms.text(p.ranks[root].v[0])
		leaves := strings.FieldsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, leaves, "root %d: %s", root, text)
	}
}
