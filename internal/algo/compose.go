package algo

// Schedules are built from smaller ones. Parts is the affair of whoever builds the
// whole; what is here is about steps.

// then is s followed by next, in the parts of s.
func (s Schedule) then(next Schedule) Schedule {
	if next.Steps == 0 {
		return s
	}
	first, second, n := s.at, next.at, s.Steps
	if n == 0 {
		s.at = second
	} else {
		s.at = func(k int, st *Step) {
			if k < n {
				first(k, st)
			} else {
				second(k-n, st)
			}
		}
	}
	s.Steps += next.Steps
	s.Swap = s.Swap || next.Swap
	return s
}

// mirror is s run backwards, each message going the other way: a broadcast becomes
// a reduction, an all-gather a reduce-scatter, a scatter a gather. s must only
// copy. That a mirrored schedule is right follows from s being right: where s
// brought one value from the root along a tree of messages, the mirror brings one
// from each leaf back along that tree.
func (s Schedule) mirror(reduce bool) Schedule {
	at, last := s.at, s.Steps-1
	s.at = func(k int, st *Step) {
		at(last-k, st)
		st.Send, st.Recv = st.Recv, st.Send
		for i := range st.Recv {
			st.Recv[i].Reduce = reduce
		}
	}
	return s
}

// cut is s with V cut into parts.
func (s Schedule) cut(parts int) Schedule {
	s.Parts = parts
	return s
}

// sendTo and recvFrom are schedules of one move.
func sendTo(m Move) Schedule {
	return Schedule{Steps: 1, at: func(_ int, st *Step) { st.Send = append(st.Send, m) }}
}

func recvFrom(m Move) Schedule {
	return Schedule{Steps: 1, at: func(_ int, st *Step) { st.Recv = append(st.Recv, m) }}
}

// A group is an ordered set of ranks, seen from member me: all ranks, the ranks of
// a host, or one of each host. Algorithms count members, and rank says who they are.
type group struct {
	size, me int
	rank     func(i int) int
}

// peer is the rank of member i, counted around: -1 is the last, size the first.
func (g group) peer(i int) int { return g.rank(mod(i, g.size)) }

// from is g counted from member first.
func (g group) from(first int) group {
	return group{g.size, mod(g.me-first, g.size), func(i int) int { return g.peer(i + first) }}
}

// byRank is all ranks in the order of their numbers.
func byRank(t Topology, rank int) group {
	return group{t.Size(), rank, func(i int) int { return i }}
}

// byHost is all ranks, host by host: neighbours share a host where they can.
func byHost(t Topology, rank int) group {
	return group{t.Size(), t.Position(rank), t.At}
}

// locals is the ranks of rank's host.
func locals(t Topology, rank int) group {
	node := t.Node(rank)
	return group{t.Locals(node), t.Local(rank), func(i int) int { return t.Rank(node, i) }}
}

// leaders is one rank of each host, as leader gives it, seen from rank's host.
func leaders(t Topology, rank, root int) group {
	return group{t.Nodes(), t.Node(rank), func(i int) int { return leader(t, i, root) }}
}

// leader is the rank that speaks for a host: root for its own, the first elsewhere.
func leader(t Topology, node, root int) int {
	if node == t.Node(root) {
		return root
	}
	return t.Rank(node, 0)
}

// mod is i modulo n, never negative.
func mod(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// around appends the moves that carry parts lo to hi-1, counted around n parts: two
// moves where the range wraps. A range has at most n parts.
func around(ms []Move, peer, lo, hi, n int) []Move {
	count := hi - lo
	lo = mod(lo, n)
	if hi = lo + count; hi <= n {
		return append(ms, Move{Peer: peer, Lo: lo, Hi: hi})
	}
	return append(ms, Move{Peer: peer, Lo: lo, Hi: n}, Move{Peer: peer, Lo: 0, Hi: hi - n})
}
