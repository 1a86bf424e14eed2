package algo

import "slices"

// The chain algorithms reduce strictly from the left, ((v0 + v1) + v2) + ..., which
// is what a program on one rank would compute, and so the same bits on any number
// of ranks that hold the same addends. The vector goes from rank 0 to rank n-1, each
// adding its own, cut into pieces that follow one another like cars on a track.
//
// All ranks share a clock in thought: piece q leaves rank r at tick q+r. A rank's
// steps are the ticks at which it does something.

// chainPieces is how many pieces reductions of a vector travel in: enough that a few
// ranks work at once, few enough for short vectors.
const chainPieces = 8

// A flow is a stream of pieces to or from one peer: piece q, lo <= q < hi, at tick
// start+q.
type flow struct {
	send, reduce  bool
	peer          int // or owner: piece q goes to rank q
	start, lo, hi int
}

const owner = -1

// pipeline runs flows side by side.
func pipeline(parts int, flows []flow) Schedule {
	slices.SortFunc(flows, func(a, b flow) int { return (a.start + a.lo) - (b.start + b.lo) })
	begin := flows[0].start + flows[0].lo
	end := begin
	// Between sending a piece on and its coming back a rank may have nothing to do.
	idle, gap := 0, 0
	for _, f := range flows {
		if from := f.start + f.lo; from > end {
			idle, gap = end-begin, from-end
		}
		end = max(end, f.start+f.hi)
	}
	return Schedule{Parts: parts, Steps: end - begin - gap, at: func(k int, st *Step) {
		tick := begin + k
		if gap > 0 && k >= idle {
			tick += gap
		}
		for _, f := range flows {
			q := tick - f.start
			if q < f.lo || q >= f.hi {
				continue
			}
			m := Move{Peer: f.peer, Lo: q, Hi: q + 1, Reduce: f.reduce}
			if f.peer == owner {
				m.Peer = q
			}
			if f.send {
				st.Send = append(st.Send, m)
			} else {
				st.Recv = append(st.Recv, m)
			}
		}
	}}
}

// forward is the flows that reduce parts parts from rank 0 to rank n-1. A piece is
// there after tick q+n-2.
func forward(n, rank, parts int) []flow {
	var flows []flow
	if rank > 0 {
		flows = append(flows, flow{reduce: true, peer: rank - 1, start: rank - 1, hi: parts})
	}
	if rank < n-1 {
		flows = append(flows, flow{send: true, peer: rank + 1, start: rank, hi: parts})
	}
	return flows
}

// chainReduce ends with rank n-1 passing each piece to root as it is ready.
func chainReduce(t Topology, rank, root int) Schedule {
	n := t.Size()
	flows := forward(n, rank, chainPieces)
	switch {
	case root == n-1:
	case rank == n-1:
		flows = append(flows, flow{send: true, peer: root, start: n - 1, hi: chainPieces})
	case rank == root:
		flows = append(flows, flow{peer: n - 1, start: n - 1, hi: chainPieces})
	}
	return pipeline(chainPieces, flows)
}

// chainAllReduce ends with the pieces going back the way they came, while later ones
// are still on their way.
func chainAllReduce(t Topology, rank, _ int) Schedule {
	n := t.Size()
	flows := forward(n, rank, chainPieces)
	if rank < n-1 {
		flows = append(flows, flow{peer: rank + 1, start: 2*n - 3 - rank, hi: chainPieces})
	}
	if rank > 0 {
		flows = append(flows, flow{send: true, peer: rank - 1, start: 2*n - 2 - rank, hi: chainPieces})
	}
	return pipeline(chainPieces, flows)
}

// chainReduceScatter ends with rank n-1 passing each part to its rank as it is
// ready, which is while that rank sends off its last part.
func chainReduceScatter(t Topology, rank, _ int) Schedule {
	n := t.Size()
	flows := forward(n, rank, n)
	if rank == n-1 {
		flows = append(flows, flow{send: true, peer: owner, start: n - 1, hi: n - 1})
	} else {
		flows = append(flows, flow{peer: n - 1, start: n - 1, lo: rank, hi: rank + 1})
	}
	return pipeline(n, flows)
}
