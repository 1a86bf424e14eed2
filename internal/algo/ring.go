package algo

// ring is the all-gather around a ring: each member passes on what it got last. In
// direction dir (1 or -1) member i sends to i+dir alone and receives from i-dir
// alone; n-1 steps move n-1 parts, the least possible. part numbers the parts that
// members start with.
func ring(g group, dir int, part func(i int) int) Schedule {
	next, prev := g.peer(g.me+dir), g.peer(g.me-dir)
	return Schedule{Steps: g.size - 1, at: func(k int, st *Step) {
		// Before step k this member holds the parts of itself and the k before it.
		out, in := part(mod(g.me-dir*k, g.size)), part(mod(g.me-dir*(k+1), g.size))
		st.Send = append(st.Send, Move{Peer: next, Lo: out, Hi: out + 1})
		st.Recv = append(st.Recv, Move{Peer: prev, Lo: in, Hi: in + 1})
	}}
}

// ringAllReduce is the all-reduce of Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations" (2009): a reduce-scatter, then
// an all-gather, around a ring. Each rank moves 2(n-1)/n of the vector each way, the
// least possible, in 2(n-1) steps: for vectors too large to care about latency. The
// ring goes host by host, so one message of each step enters a host, and one leaves.
//
// The first half is the second run backwards around the opposite ring, so both send
// the same way.
func ringAllReduce(t Topology, rank, _ int) Schedule {
	g := byHost(t, rank)
	part := func(i int) int { return i }
	return ring(g, -1, part).mirror(true).then(ring(g, 1, part)).cut(g.size)
}

// ringReduceScatter is the first half of ringAllReduce, in parts named by rank.
func ringReduceScatter(t Topology, rank, _ int) Schedule {
	g := byHost(t, rank)
	return ring(g, -1, g.rank).mirror(true).cut(g.size)
}

// ringAllGather is the second half of ringAllReduce, in parts named by rank.
func ringAllGather(t Topology, rank, _ int) Schedule {
	g := byHost(t, rank)
	return ring(g, 1, g.rank).cut(g.size)
}
