package algo

// hierAllReduce reduces to the leader of each host, combines those by recursive
// doubling, and broadcasts inside each host: the least latency between hosts, and
// only one rank of each host talks to others. With one rank on each host it is
// doubling, on one host it is tree.
func hierAllReduce(t Topology, rank, _ int) Schedule {
	if o, ok := t.(*ordered); ok { // the leaders' ranks must ascend, for doubling
		t = o.of
	}
	return hier(t, rank, 1, func(g group) Schedule { return folded(g, 1, doubling) }).cut(1)
}

// hierBarrier is dissemination between hosts and a tree inside each.
func hierBarrier(t Topology, rank, _ int) Schedule {
	return hier(t, rank, 0, dissemination).cut(1)
}

// hier runs between among the hosts' first ranks, and brings what the other ranks of
// a host have, parts parts, to its first rank before and back after.
func hier(t Topology, rank, parts int, between func(group) Schedule) Schedule {
	down := binomial(locals(t, rank), 0, whole(parts))
	up := down.mirror(parts > 0)
	if t.Local(rank) == 0 {
		first := t.Rank(0, 0)
		up = up.then(between(leaders(t, rank, first)))
	}
	return up.then(down)
}
