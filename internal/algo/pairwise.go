package algo

// pairwiseAllToAll is the pairwise exchange (Thakur, Rabenseifner and Gropp 2005,
// section 4.3): in step k every rank sends to the rank k+1 after it and receives
// from the one k+1 before it, so that no rank is sent to by two at once.
func pairwiseAllToAll(t Topology, rank, _ int) Schedule {
	n := t.Size()
	return Schedule{Parts: n, Steps: n - 1, at: func(k int, st *Step) {
		to, from := mod(rank+k+1, n), mod(rank-k-1, n)
		st.Send = append(st.Send, Move{Peer: to, Lo: to, Hi: to + 1})
		st.Recv = append(st.Recv, Move{Peer: from, Lo: from, Hi: from + 1})
	}}
}
