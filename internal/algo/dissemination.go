package algo

import "math/bits"

// disseminationBarrier is the barrier of Hensgen, Finkel and Manber, "Two algorithms
// for barrier synchronization" (1988): after step k a rank knows of the 2^(k+1)-1
// before it. log n steps, rounded up, for any n.
func disseminationBarrier(t Topology, rank, _ int) Schedule {
	return dissemination(byRank(t, rank)).cut(1)
}

func dissemination(g group) Schedule {
	return Schedule{Steps: bits.Len(uint(g.size - 1)), at: func(k int, st *Step) {
		st.Send = append(st.Send, Move{Peer: g.peer(g.me + 1<<k)})
		st.Recv = append(st.Recv, Move{Peer: g.peer(g.me - 1<<k)})
	}}
}

// disseminationAllGather is the all-gather of Bruck, Ho, Kipnis, Upfal and
// Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems" (1997), without its final rotation: parts go where they
// belong at once, and a range that wraps around is two moves. It moves n-1 parts,
// the least possible, in log n steps, rounded up, for any n.
func disseminationAllGather(t Topology, rank, _ int) Schedule {
	n := t.Size()
	g := byRank(t, rank)
	return Schedule{Parts: n, Steps: bits.Len(uint(n - 1)), at: func(k int, st *Step) {
		// Before step k this rank holds the parts of itself and the held-1 after it.
		held := 1 << k
		count := min(held, n-held)
		st.Send = around(st.Send, g.peer(rank-held), rank, rank+count, n)
		st.Recv = around(st.Recv, g.peer(rank+held), rank+held, rank+held+count, n)
	}}
}

// disseminationReduceScatter is the all-gather run backwards, as in Träff, "Optimal,
// non-pipelined reduce-scatter and allreduce algorithms" (2023): n-1 parts in log n
// steps for any n, where recursive halving must fold what exceeds a power of two.
func disseminationReduceScatter(t Topology, rank, root int) Schedule {
	return disseminationAllGather(t, rank, root).mirror(true)
}

// disseminationAllReduce is both, one after the other (Träff 2023): 2(n-1)/n of the
// vector each way, the least possible, in 2 log n steps for any n.
func disseminationAllReduce(t Topology, rank, root int) Schedule {
	gather := disseminationAllGather(t, rank, root)
	return gather.mirror(true).then(gather)
}
