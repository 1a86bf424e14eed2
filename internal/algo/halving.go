package algo

import "math/bits"

// halvingAllReduce is Rabenseifner's all-reduce, "Optimization of collective
// reduction operations" (2004): a reduce-scatter by recursive halving, then an
// all-gather by recursive doubling. On a power of two of ranks it moves 2(n-1)/n of
// the vector each way, the least possible, in 2 log n steps; otherwise the ranks
// that are folded move it whole once more each way.
func halvingAllReduce(t Topology, rank, _ int) Schedule {
	g := byHost(t, rank)
	parts := 1 << log2(g.size)
	return folded(g, parts, func(g group) Schedule {
		gather := doublingAllGather(g)
		return gather.mirror(true).then(gather)
	}).cut(parts)
}

// doublingAllGather gathers g.size parts, a power of two, by recursive doubling. Its
// last step moves half of the vector, and does so between neighbours, which may
// share a host: so distances halve as sizes double, and the parts belong to the
// members in bit-reversed order.
func doublingAllGather(g group) Schedule {
	steps := log2(g.size)
	return Schedule{Steps: steps, at: func(k int, st *Step) {
		// Members that agree in their lowest bit bits hold the same range of parts,
		// which starts at those bits reversed.
		bit, held := steps-1-k, 1<<k
		start := func(member int) int {
			return int(bits.Reverse(uint(member)&(2<<bit-1)) >> (bits.UintSize - steps))
		}
		other := g.me ^ 1<<bit
		peer, mine, theirs := g.rank(other), start(g.me), start(other)
		st.Send = append(st.Send, Move{Peer: peer, Lo: mine, Hi: mine + held})
		st.Recv = append(st.Recv, Move{Peer: peer, Lo: theirs, Hi: theirs + held})
	}}
}
