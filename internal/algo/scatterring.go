package algo

// scatterRingBroadcast is van de Geijn's broadcast for long vectors (Barnett, Gupta,
// Payne, Shuler, van de Geijn and Watts, "Interprocessor collective communication
// library", 1994): scatter the vector down a binomial tree, then all-gather it
// around a ring. The root sends less than twice the vector, where a tree sends it
// log n times.
func scatterRingBroadcast(t Topology, rank, root int) Schedule {
	scatter, gather := scatterRing(t, rank, root)
	return scatter.then(gather).cut(t.Size())
}

// scatterRingReduce is the same backwards: a reduce-scatter around a ring, then a
// gather up the tree.
func scatterRingReduce(t Topology, rank, root int) Schedule {
	scatter, gather := scatterRing(t, rank, root)
	return gather.mirror(true).then(scatter.mirror(false)).cut(t.Size())
}

// scatterRing is the two phases of the broadcast. Parts are numbered host by host
// and from root on, so that a subtree's parts are one range.
func scatterRing(t Topology, rank, root int) (scatter, gather Schedule) {
	g := byHost(t, rank).from(t.Position(root))
	scatter = binomial(g, 0, func(ms []Move, peer, lo, hi int) []Move {
		return append(ms, Move{Peer: peer, Lo: lo, Hi: hi})
	})
	return scatter, ring(g, 1, func(i int) int { return i })
}
