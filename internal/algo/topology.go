package algo

// Topology says which ranks share a host. It must be the same on all ranks. Hosts
// are numbered in the order of their first ranks, and the ranks of a host in theirs.
// All queries take constant time.
type Topology interface {
	Size() int
	Nodes() int
	Node(rank int) int        // the host of rank
	Local(rank int) int       // its index among the ranks of its host
	Locals(node int) int      // how many ranks host node has; at least one
	Rank(node, local int) int // the inverse

	// Position is the index of rank when all ranks are listed host by host.
	Position(rank int) int
	// Run is its inverse, and tells how many positions from pos on hold the ranks
	// that follow: with rank, rank+1, ..., rank+run-1.
	Run(pos int) (rank, run int)
}

// Flat is n ranks on one host.
func Flat(n int) Topology { return blocks{1, n} }

// Blocks is nodes hosts with per ranks each, host by host: ranks 0 to per-1 on host
// 0, and so on. Blocks(n, 1) gives every rank a host of its own.
func Blocks(nodes, per int) Topology { return blocks{nodes, per} }

type blocks struct{ nodes, per int }

func (b blocks) Size() int                { return b.nodes * b.per }
func (b blocks) Nodes() int               { return b.nodes }
func (b blocks) Node(rank int) int        { return rank / b.per }
func (b blocks) Local(rank int) int       { return rank % b.per }
func (b blocks) Locals(int) int           { return b.per }
func (b blocks) Rank(node, local int) int { return node*b.per + local }
func (b blocks) Position(rank int) int    { return rank }
func (b blocks) Run(pos int) (int, int)   { return pos, b.Size() - pos }

// Placed is rank r on host nodeOf[r]: round robin, uneven, anything. Equal numbers
// are one host; hosts are numbered anew, in the order of their first ranks, so the
// numbers need not be dense. Unless the ranks turn out to be in equal blocks it
// holds memory for each rank: the ranks of a process should share it.
func Placed(nodeOf []int) Topology {
	t := placed{
		node:  make([]int32, len(nodeOf)),
		local: make([]int32, len(nodeOf)),
		order: make([]int32, len(nodeOf)),
		run:   make([]int32, len(nodeOf)),
	}
	number := map[int]int32{}
	var count []int32 // ranks of each host
	for r, name := range nodeOf {
		node, known := number[name]
		if !known {
			node = int32(len(count))
			number[name] = node
			count = append(count, 0)
		}
		t.node[r], t.local[r] = node, count[node]
		count[node]++
	}
	t.first = make([]int32, len(count)+1)
	for i, c := range count {
		t.first[i+1] = t.first[i] + c
	}
	for r := range nodeOf {
		t.order[t.Position(r)] = int32(r)
	}
	for pos := len(nodeOf) - 1; pos >= 0; pos-- {
		t.run[pos] = 1
		if pos+1 < len(nodeOf) && t.order[pos+1] == t.order[pos]+1 {
			t.run[pos] += t.run[pos+1]
		}
	}
	if t.even() {
		return blocks{len(count), int(count[0])}
	}
	return t
}

type placed struct {
	node, local []int32 // by rank
	order, run  []int32 // by position
	first       []int32 // by host, and one more: its first position
}

// even reports whether the ranks are as in blocks.
func (t placed) even() bool {
	if len(t.order) == 0 || int(t.run[0]) != len(t.order) {
		return false
	}
	for node := range t.Nodes() {
		if t.Locals(node) != t.Locals(0) {
			return false
		}
	}
	return true
}

func (t placed) Size() int                { return len(t.node) }
func (t placed) Nodes() int               { return len(t.first) - 1 }
func (t placed) Node(rank int) int        { return int(t.node[rank]) }
func (t placed) Local(rank int) int       { return int(t.local[rank]) }
func (t placed) Locals(node int) int      { return int(t.first[node+1] - t.first[node]) }
func (t placed) Rank(node, local int) int { return int(t.order[int(t.first[node])+local]) }
func (t placed) Position(rank int) int    { return int(t.first[t.node[rank]] + t.local[rank]) }
func (t placed) Run(pos int) (int, int)   { return int(t.order[pos]), int(t.run[pos]) }

// firstPosition is where the ranks of host node begin, or end for node-1.
func firstPosition(t Topology, node int) int {
	if node == t.Nodes() {
		return t.Size()
	}
	return t.Position(t.Rank(node, 0))
}
