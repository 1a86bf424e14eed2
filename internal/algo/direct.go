package algo

// The direct algorithms let everybody talk to everybody concerned at once. They
// have the fewest steps and the most messages: right where a message costs next to
// nothing, as a flag in shared memory does, or where each is long.

// others calls do for each of n ranks but rank, downwards from it, then upwards. A
// rank that folds contributions into its own in this order keeps them sorted, as in
// (0 + (1 + 2)) + 3 at rank 2: at rank 0 that is the fold from the left.
func others(n, rank int, do func(peer int)) {
	for peer := rank - 1; peer >= 0; peer-- {
		do(peer)
	}
	for peer := rank + 1; peer < n; peer++ {
		do(peer)
	}
}

func directBarrier(t Topology, rank, _ int) Schedule {
	return Schedule{Parts: 1, Steps: 1, at: func(_ int, st *Step) {
		others(t.Size(), rank, func(peer int) {
			st.Send = append(st.Send, Move{Peer: peer})
			st.Recv = append(st.Recv, Move{Peer: peer})
		})
	}}
}

func directBroadcast(t Topology, rank, root int) Schedule {
	return star(t, rank, root, func(peer, _ int) Move { return Move{Peer: peer, Lo: 0, Hi: 1} }).cut(1)
}

func directReduce(t Topology, rank, root int) Schedule {
	return directBroadcast(t, rank, root).mirror(true)
}

func directScatter(t Topology, rank, root int) Schedule {
	return star(t, rank, root, func(peer, leaf int) Move { return Move{Peer: peer, Lo: leaf, Hi: leaf + 1} }).cut(t.Size())
}

func directGather(t Topology, rank, root int) Schedule {
	return directScatter(t, rank, root).mirror(false)
}

// star is one step in which root sends move(leaf, leaf) to every other rank, leaf,
// which receives move(root, leaf).
func star(t Topology, rank, root int, move func(peer, leaf int) Move) Schedule {
	if rank != root {
		return recvFrom(move(root, rank))
	}
	return Schedule{Steps: 1, at: func(_ int, st *Step) {
		others(t.Size(), root, func(leaf int) { st.Send = append(st.Send, move(leaf, leaf)) })
	}}
}

func directAllGather(t Topology, rank, _ int) Schedule {
	return Schedule{Parts: t.Size(), Steps: 1, at: func(_ int, st *Step) {
		others(t.Size(), rank, func(peer int) {
			st.Send = append(st.Send, Move{Peer: peer, Lo: rank, Hi: rank + 1})
			st.Recv = append(st.Recv, Move{Peer: peer, Lo: peer, Hi: peer + 1})
		})
	}}
}

// directReduceScatter brings every contribution to a part straight to its rank.
func directReduceScatter(t Topology, rank, root int) Schedule {
	return directAllGather(t, rank, root).mirror(true)
}

// directAllReduce reduces each part at one rank, which then hands it to all: two
// steps that move 2(n-1)/n of the vector each way, the least possible.
func directAllReduce(t Topology, rank, root int) Schedule {
	gather := directAllGather(t, rank, root)
	return gather.mirror(true).then(gather)
}

func directAllToAll(t Topology, rank, _ int) Schedule {
	return Schedule{Parts: t.Size(), Steps: 1, at: func(_ int, st *Step) {
		others(t.Size(), rank, func(peer int) {
			st.Send = append(st.Send, Move{Peer: peer, Lo: peer, Hi: peer + 1})
			st.Recv = append(st.Recv, Move{Peer: peer, Lo: peer, Hi: peer + 1})
		})
	}}
}
