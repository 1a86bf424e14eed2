package shrink

import "github.com/goccl/goccl/internal/algo"

const (
	// flat is the largest Comm whose ranks all speak with the lead themselves.
	flat = 64
	// width is how many hosts speak through one other in a larger one.
	width = 16
)

// Above returns the tree through which the ranks of a Comm speak with the lead of an agreement: see agree.Asks. On each host the lowest
// rank that is not gone speaks for all. Hosts are a tree in the order of their numbers, of which each host has children of its own. Where all
// ranks of a host are gone its children speak through the host above it.
func Above(topo algo.Topology, width int) func(r int, gone func(r int) bool) int {
	lowest := func(node int, gone func(r int) bool) int {
		for l := range topo.Locals(node) {
			if r := topo.Rank(node, l); !gone(r) {
				return r
			}
		}
		return -1
	}
	return func(r int, gone func(r int) bool) int {
		node := topo.Node(r)
		if first := lowest(node, gone); first >= 0 && first != r {
			return first
		}
		for node > 0 {
			node = (node - 1) / width
			if first := lowest(node, gone); first >= 0 {
				return first
			}
		}
		return -1
	}
}

// above is the tree of c's agreements, nil if they have none.
func (c *Shrinker) above() func(r int, gone func(r int) bool) int {
	if g := &c.rank.Group; g.Size() > c.flat && g.Topology().Nodes() > 1 {
		return Above(g.Topology(), width)
	}
	return nil
}
