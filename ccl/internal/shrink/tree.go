package shrink

import (
	"slices"

	"github.com/goccl/goccl/internal/agree"
	"github.com/goccl/goccl/internal/algo"
)

const (
	// flat is the largest Comm whose ranks all speak with the lead themselves.
	flat = 64
	// width is how many hosts speak through one other in a larger one.
	width = 16
)

// Tree is that through which the ranks of a Comm speak with the lead of an agreement. On each host
// the lowest rank that is not gone speaks for all. Hosts are a tree in the order of their numbers:
// each has so many others below it. Where all ranks of a host are gone, those below it speak
// through the host above it.
type Tree struct {
	Topo  algo.Topology
	Width int
}

// Above is the rank through which rank r speaks.
func (t Tree) Above(r int, gone func(r int) bool) int {
	node := t.Topo.Node(r)
	if first := t.lowest(node, gone); first >= 0 && first != r {
		return first
	}
	for node > 0 {
		node = (node - 1) / t.Width
		if first := t.lowest(node, gone); first >= 0 {
			return first
		}
	}
	return -1
}

// lowest is the first rank of a host that is not gone, -1 if all are.
func (t Tree) lowest(node int, gone func(r int) bool) int {
	for l := range t.Topo.Locals(node) {
		if r := t.Topo.Rank(node, l); !gone(r) {
			return r
		}
	}
	return -1
}

// Below lists the ranks that may speak through rank r: the others of its host, and those of the hosts below it.
func (t Tree) Below(r int) (list []int32) {
	nodes := t.Topo.Nodes()
	for from, to := t.Topo.Node(r), t.Topo.Node(r)+1; from < nodes; from, to = from*t.Width+1, to*t.Width+1 {
		for node := from; node < min(to, nodes); node++ {
			for l := range t.Topo.Locals(node) {
				if x := t.Topo.Rank(node, l); x != r {
					list = append(list, int32(x))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// tree is that of c's agreements, nil if they have none.
func (c *Shrinker) tree() agree.Tree {
	if g := &c.rank.Group; g.Size() > c.flat && g.Topology().Nodes() > 1 {
		return Tree{g.Topology(), width}
	}
	return nil
}
