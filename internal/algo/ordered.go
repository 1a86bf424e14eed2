package algo

import "slices"

// Ordered is t with its hosts in another order: hosts has each once. So rings go from host to host in that
// order, and hosts are numbered by it and not by their first ranks.
func Ordered(t Topology, hosts []int) Topology {
	o := &ordered{of: t, host: hosts, number: make([]int, len(hosts)), first: make([]int, len(hosts)+1)}
	for i, h := range hosts {
		o.number[h] = i
		o.first[i+1] = o.first[i] + t.Locals(h)
	}
	return o
}

type ordered struct {
	of     Topology
	host   []int // in t, by number
	number []int // by host in t
	first  []int // by number, and one more: the first position
}

func (o *ordered) Size() int                { return o.of.Size() }
func (o *ordered) Nodes() int               { return o.of.Nodes() }
func (o *ordered) Local(rank int) int       { return o.of.Local(rank) }
func (o *ordered) Node(rank int) int        { return o.number[o.of.Node(rank)] }
func (o *ordered) Locals(node int) int      { return o.of.Locals(o.host[node]) }
func (o *ordered) Rank(node, local int) int { return o.of.Rank(o.host[node], local) }
func (o *ordered) Position(rank int) int    { return o.first[o.Node(rank)] + o.Local(rank) }

func (o *ordered) At(pos int) int {
	node, found := slices.BinarySearch(o.first, pos)
	if !found {
		node--
	}
	return o.Rank(node, pos-o.first[node])
}

func (o *ordered) Run(pos, most int) (rank, run int) {
	rank = o.At(pos)
	for run = 1; run < most && pos+run < o.Size() && o.At(pos+run) == rank+run; run++ {
	}
	return rank, run
}
