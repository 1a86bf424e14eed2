package algo

import "slices"

// Topology says which ranks share a host. It must be the same on all ranks. Hosts
// are numbered in the order of their first ranks, and the ranks of a host in theirs.
// No query but Run takes time that grows with the ranks, other than by their logarithm.
type Topology interface {
	Size() int
	Nodes() int
	Node(rank int) int        // the host of rank
	Local(rank int) int       // its index among the ranks of its host
	Locals(node int) int      // how many ranks host node has; at least one
	Rank(node, local int) int // the inverse

	// Position is the index of rank when all ranks are listed host by host.
	Position(rank int) int
	At(pos int) (rank int) // its inverse
	// Run is At, and tells how many positions from pos on hold the ranks that follow, of
	// at most so many: with rank, rank+1, ..., rank+run-1. It may look at all of these.
	Run(pos, most int) (rank, run int)
}

// Flat is n ranks on one host.
func Flat(n int) Topology { return blocks{1, n} }

// Blocks is nodes hosts with per ranks each, host by host: ranks 0 to per-1 on host
// 0, and so on. Blocks(n, 1) gives every rank a host of its own.
func Blocks(nodes, per int) Topology { return blocks{nodes, per} }

type blocks struct{ nodes, per int }

func (b blocks) Size() int                    { return b.nodes * b.per }
func (b blocks) Nodes() int                   { return b.nodes }
func (b blocks) Node(rank int) int            { return rank / b.per }
func (b blocks) Local(rank int) int           { return rank % b.per }
func (b blocks) Locals(int) int               { return b.per }
func (b blocks) Rank(node, local int) int     { return node*b.per + local }
func (b blocks) Position(rank int) int        { return rank }
func (b blocks) At(pos int) int               { return pos }
func (b blocks) Run(pos, most int) (int, int) { return pos, min(b.Size()-pos, most) }

// Placed is rank r on host nodeOf[r]: round robin, uneven, anything. Equal numbers
// are one host; hosts are numbered anew, in the order of their first ranks, so the
// numbers need not be dense. Equal blocks take no memory. What else follows an order
// takes 4 bytes a host and some stretches; the rest, and small jobs, for which no
// query is to take longer, 8 bytes a rank more.
func Placed(nodeOf []int) Topology {
	number := map[int]int32{}
	var count []int32 // ranks of each host
	node := make([]int32, len(nodeOf))
	for r, name := range nodeOf {
		h, known := number[name]
		if !known {
			h = int32(len(count))
			number[name] = h
			count = append(count, 0)
		}
		node[r] = h
		count[h]++
	}
	t := &placed{first: make([]int32, len(count)+1)}
	for h, c := range count {
		t.first[h+1] = t.first[h] + c
	}
	byHost := slices.IsSorted(node)
	if byHost && len(node) > 0 && slices.Max(count) == slices.Min(count) {
		return blocks{len(count), int(count[0])}
	}
	if len(node) > fewRanks {
		if byHost {
			return t
		}
		if t.stretches = stretchesOf(node); t.stretches != nil {
			return t
		}
	}
	t.node, t.rank = node, make([]int32, len(node))
	next := slices.Clone(t.first) // by host, the position of its next rank
	for r, h := range node {
		t.rank[next[h]] = int32(r)
		next[h]++
	}
	return t
}

// fewRanks is how many ranks have a table in any case.
const fewRanks = 64

// placed gives the ranks of each host positions in a row. Which rank has which is what stretches
// say, or a table; without either, a rank's position is its number.
type placed struct {
	first     []int32 // by host, and one more: its first position
	stretches []stretch
	node      []int32 // by rank
	rank      []int32 // by position
}

func (t *placed) Size() int           { return int(t.first[len(t.first)-1]) }
func (t *placed) Nodes() int          { return len(t.first) - 1 }
func (t *placed) Locals(node int) int { return int(t.first[node+1] - t.first[node]) }

func (t *placed) Node(rank int) int {
	switch {
	case t.node != nil:
		return int(t.node[rank])
	case t.stretches != nil:
		return nodeIn(t.stretches, rank)
	}
	return t.nodeAt(rank)
}

func (t *placed) Local(rank int) int {
	node := t.Node(rank)
	switch {
	case t.node != nil:
		local, _ := slices.BinarySearch(t.rank[t.first[node]:t.first[node+1]], int32(rank))
		return local
	case t.stretches != nil:
		return localIn(t.stretches, rank, node)
	}
	return rank - int(t.first[node])
}

func (t *placed) Rank(node, local int) int {
	pos := int(t.first[node]) + local
	switch {
	case t.node != nil:
		return int(t.rank[pos])
	case t.stretches != nil:
		return rankIn(t.stretches, node, local)
	}
	return pos
}

func (t *placed) Position(rank int) int { return int(t.first[t.Node(rank)]) + t.Local(rank) }

func (t *placed) At(pos int) int {
	if t.node != nil {
		return int(t.rank[pos])
	}
	node := t.nodeAt(pos)
	return t.Rank(node, pos-int(t.first[node]))
}

func (t *placed) Run(pos, most int) (rank, run int) {
	rank, most = t.At(pos), min(most, t.Size()-pos)
	if t.node == nil && t.stretches == nil {
		return rank, most
	}
	for run = 1; run < most && t.At(pos+run) == rank+run; run++ {
	}
	return rank, run
}

// nodeAt is the host of the rank with that position.
func (t *placed) nodeAt(pos int) int {
	node, begins := slices.BinarySearch(t.first, int32(pos))
	if !begins {
		node--
	}
	return node
}

// firstPosition is where the ranks of host node begin, or end for node-1.
func firstPosition(t Topology, node int) int {
	if node == t.Nodes() {
		return t.Size()
	}
	return t.Position(t.Rank(node, 0))
}
