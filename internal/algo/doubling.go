package algo

import "math/bits"

// doublingAllReduce is recursive doubling, as in Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH" (2005): after step
// k the members of each block of 2^(k+1) hold the block's result. log n steps of the
// whole vector: the least latency, for short vectors.
//
// Both sides of a swap combine the lower rank's operand first. Members are in rank
// order, so every pair that joins two blocks agrees which block that is, and by
// induction all members of a block compute the same expression.
func doublingAllReduce(t Topology, rank, _ int) Schedule {
	return folded(byRank(t, rank), 1, doubling).cut(1)
}

// doubling is recursive doubling of one part, among a power of two of members whose
// ranks ascend.
func doubling(g group) Schedule {
	steps := log2(g.size)
	return Schedule{Steps: steps, Swap: steps > 0, at: func(k int, st *Step) {
		peer := g.rank(g.me ^ 1<<k)
		st.Send = append(st.Send, Move{Peer: peer, Lo: 0, Hi: 1})
		st.Recv = append(st.Recv, Move{Peer: peer, Lo: 0, Hi: 1, Reduce: true})
	}}
}

// folded makes an all-reduce among a power of two of members, core, one among any
// number (Thakur, Rabenseifner and Gropp 2005, section 4.4). Of the rem members too
// many, one in each of the first rem pairs hands its contribution to its neighbour
// first and gets the result from it last.
func folded(g group, parts int, core func(group) Schedule) Schedule {
	size := 1 << log2(g.size)
	rem := g.size - size
	inner := func(me int) Schedule {
		return core(group{size, me, func(i int) int {
			if i < rem {
				return g.rank(2*i + 1)
			}
			return g.rank(i + rem)
		}})
	}
	switch {
	case g.me >= 2*rem:
		return inner(g.me - rem)
	case g.me%2 == 0:
		all := Move{Peer: g.rank(g.me + 1), Lo: 0, Hi: parts}
		return sendTo(all).then(recvFrom(all))
	default:
		all := Move{Peer: g.rank(g.me - 1), Lo: 0, Hi: parts}
		add := all
		add.Reduce = true
		return recvFrom(add).then(inner(g.me / 2)).then(sendTo(all))
	}
}

// log2 is the binary logarithm of n >= 1, rounded down.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
