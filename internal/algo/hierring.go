package algo

// hierRingAllReduce is two levels of rings: the ranks of a host share out the vector by a
// reduce-scatter, each reduces its share with the ranks of its place on the other hosts, and the
// host gathers the shares. A share is cut by hosts, so that all levels are rings. What crosses the
// network is 2(h-1)/h of the vector for each of h hosts, the least possible, over as many
// connections as a host has ranks, in 2(h-1) + 2(l-1) steps of l ranks a host, where one ring over
// all takes 2(hl-1). Where hosts have different numbers of ranks it is that one ring.
func hierRingAllReduce(t Topology, rank, root int) Schedule {
	hosts, each := t.Nodes(), t.Locals(0)
	for node := range hosts {
		if t.Locals(node) != each {
			return ringAllReduce(t, rank, root)
		}
	}
	here := locals(t, rank)
	there := group{hosts, t.Node(rank), func(i int) int { return t.Rank(i, here.me) }}
	mine := func(host int) int { return here.me*hosts + host }
	share := func(dir int) Schedule {
		return ring(here, dir, func(i int) int { return i }).widen(hosts)
	}
	return share(-1).mirror(true).
		then(ring(there, -1, mine).mirror(true)).
		then(ring(there, 1, mine)).
		then(share(1)).cut(hosts * each)
}

// widen is s where each part is by parts.
func (s Schedule) widen(by int) Schedule {
	at := s.at
	s.at = func(k int, st *Step) {
		at(k, st)
		for _, ms := range [2][]Move{st.Send, st.Recv} {
			for i := range ms {
				ms[i].Lo, ms[i].Hi = ms[i].Lo*by, ms[i].Hi*by
			}
		}
	}
	return s
}
