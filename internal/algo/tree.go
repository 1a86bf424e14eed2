package algo

import "math/bits"

// A carry appends to ms the moves by which the data of members lo to hi-1, counted
// from the root of their tree, go to or come from peer.
type carry func(ms []Move, peer, lo, hi int) []Move

// whole carries all of V, in parts parts, whoever it is for: broadcast and reduce.
func whole(parts int) carry {
	return func(ms []Move, peer, _, _ int) []Move {
		return append(ms, Move{Peer: peer, Lo: 0, Hi: parts})
	}
}

// binomial sends from member root of g down a binomial tree. Counted from root,
// member v has the children v+1, v+2, v+4, ... below its lowest set bit, child
// v+2^j heads the members v+2^j to v+2^(j+1)-1, and the largest subtree is served
// first. log n steps for the root, and 1 + log n neighbours for any member.
func binomial(g group, root int, data carry) Schedule {
	v := mod(g.me-root, g.size)
	kids, up := bits.Len(uint(g.size-1-v)), 0
	if v > 0 {
		kids, up = min(kids, bits.TrailingZeros(uint(v))), 1
	}
	return Schedule{Steps: up + kids, at: func(k int, st *Step) {
		if k < up {
			parent, lowest := v&(v-1), v&-v
			st.Recv = data(st.Recv, g.peer(root+parent), v, min(v+lowest, g.size))
			return
		}
		size := 1 << (kids - 1 - (k - up))
		kid := v + size
		st.Send = data(st.Send, g.peer(root+kid), kid, min(kid+size, g.size))
	}}
}

// tree sends from root down a binomial tree of hosts, each spoken for by its leader,
// then from each leader down a binomial tree of its host's ranks. So the fewest
// possible messages cross hosts, one for each host but the root's, and the far ones
// go first.
func tree(t Topology, rank, root int, hosts, local carry) Schedule {
	lead := leader(t, t.Node(rank), root)
	inside := binomial(locals(t, rank), t.Local(lead), local)
	if rank != lead {
		return inside
	}
	return binomial(leaders(t, rank, root), t.Node(root), hosts).then(inside)
}

func treeBroadcast(t Topology, rank, root int) Schedule {
	return tree(t, rank, root, whole(1), whole(1)).cut(1)
}

func treeReduce(t Topology, rank, root int) Schedule {
	return treeBroadcast(t, rank, root).mirror(true)
}

// treeAllReduce reduces to the first rank of the first host and broadcasts from it.
func treeAllReduce(t Topology, rank, _ int) Schedule {
	down := treeBroadcast(t, rank, t.Rank(0, 0))
	return down.mirror(true).then(down)
}

// treeBarrier tells the first rank that all are here, then all that it knows.
func treeBarrier(t Topology, rank, _ int) Schedule {
	down := tree(t, rank, t.Rank(0, 0), whole(0), whole(0))
	return down.mirror(false).then(down).cut(1)
}

// RollCall is treeBarrier in which a rank hears from all its children at once. So at any time each
// rank either waits for its parent, and all below it have come, or it waits for just those of its
// children that are late or wait themselves: whoever follows the waits down from the root, and
// passes through late ranks to their children, finds all that are late.
func RollCall(t Topology, rank int) Schedule {
	down := tree(t, rank, RollRoot(t), whole(0), whole(0))
	return together(down.mirror(false)).then(together(down)).cut(1)
}

// RollRoot is the root of RollCall's tree.
func RollRoot(t Topology) int { return t.Rank(0, 0) }

// together has all that s receives in one step, and then in another all that s sends.
func together(s Schedule) Schedule {
	var all, st Step
	for k := range s.Steps {
		s.At(k, &st)
		all.Recv, all.Send = append(all.Recv, st.Recv...), append(all.Send, st.Send...)
	}
	hears, tells := Schedule{}, Schedule{}
	if len(all.Recv) > 0 {
		hears = Schedule{Steps: 1, at: func(_ int, st *Step) { st.Recv = append(st.Recv, all.Recv...) }}
	}
	if len(all.Send) > 0 {
		tells = Schedule{Steps: 1, at: func(_ int, st *Step) { st.Send = append(st.Send, all.Send...) }}
	}
	return hears.then(tells)
}

// treeScatter sends each subtree its parts: those of a host's ranks, or of several
// hosts', which are few moves if ranks are numbered host by host.
func treeScatter(t Topology, rank, root int) Schedule {
	node := t.Node(rank)
	lead := leader(t, node, root)
	hosts := ranksOf(t, t.Nodes(), t.Node(root), func(i int) int { return firstPosition(t, i) })
	base := firstPosition(t, node)
	local := ranksOf(t, t.Locals(node), t.Local(lead), func(i int) int { return base + i })
	return tree(t, rank, root, hosts, local).cut(t.Size())
}

func treeGather(t Topology, rank, root int) Schedule {
	return treeScatter(t, rank, root).mirror(false)
}

// ranksOf carries the parts of the ranks that a tree of size members stands for,
// where member i, counted from 0 and not from root, stands for the ranks at the
// positions from start(i) to start(i+1)-1.
func ranksOf(t Topology, size, root int, start func(i int) int) carry {
	runs := func(ms []Move, peer, from, to int) []Move {
		for pos, end := start(from), start(to); pos < end; {
			rank, run := t.Run(pos, end-pos)
			ms = append(ms, Move{Peer: peer, Lo: rank, Hi: rank + run})
			pos += run
		}
		return ms
	}
	return func(ms []Move, peer, lo, hi int) []Move {
		from := mod(lo+root, size)
		to := from + hi - lo
		ms = runs(ms, peer, from, min(to, size))
		return runs(ms, peer, 0, max(to-size, 0))
	}
}
