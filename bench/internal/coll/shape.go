// Package coll has the collectives as the benchmark sees them: one table, with
// all there is to know about each.
package coll

// Shape is one call, as one rank sees it.
type Shape struct {
	Ranks, Rank, Root int
	Count             int // elements, as the table's count column has it
	matrix            *Matrix
	sent, received    []int // of alltoallv, by rank
}

// NewShape describes a call of count elements to rank of ranks. m is for alltoallv;
// nil for what uneven says.
func NewShape(ranks, rank, root, count int, m *Matrix) Shape {
	s := Shape{Ranks: ranks, Rank: rank, Root: root, Count: count, matrix: m, sent: make([]int, ranks),
		received: make([]int, ranks)}
	for p := range ranks {
		s.sent[p], s.received[p] = s.gives(rank, p), s.gives(p, rank)
	}
	return s
}

// gives is what rank from sends to rank to in alltoallv.
func (s Shape) gives(from, to int) int {
	if s.matrix != nil {
		return s.matrix.count(from, to, s.Ranks, s.total())
	}
	return Shape{Ranks: s.Ranks, Rank: from, Count: s.Count}.uneven(to)
}

// uneven is how much this rank and rank p exchange each way in alltoallv: one half,
// once, or one and a half times Count. It depends on the sum of the two ranks, so
// both see the same number, and is a permutation for each rank, so every rank moves
// what it would in alltoall.
func (s Shape) uneven(p int) int {
	d := (s.Rank + p) % s.Ranks
	switch mirror := s.Ranks - 1 - d; {
	case d < mirror:
		return s.Count + s.Count/2
	case d > mirror:
		return s.Count - s.Count/2
	}
	return s.Count
}

// totalSent and totalReceived are what alltoallv moves.
func (s Shape) totalSent() int     { return sum(s.sent) }
func (s Shape) totalReceived() int { return sum(s.received) }

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// total is the elements of all ranks' parts.
func (s Shape) total() int { return s.Ranks * s.Count }

// isRoot reports whether this rank is the root.
func (s Shape) isRoot() bool { return s.Rank == s.Root }

// next and prev are the neighbours on a ring.
func (s Shape) next() int { return (s.Rank + 1) % s.Ranks }
func (s Shape) prev() int { return (s.Rank + s.Ranks - 1) % s.Ranks }

// Part is a stretch of a result and where it comes from: from element Off of the
// input of rank From, or of all ranks' inputs reduced (verify.Reduced).
type Part struct{ From, Off, Len int }

// every is part off of every rank's input, in rank order.
func (s Shape) every(off int) []Part {
	parts := make([]Part, s.Ranks)
	for p := range parts {
		parts[p] = Part{From: p, Off: off, Len: s.Count}
	}
	return parts
}
