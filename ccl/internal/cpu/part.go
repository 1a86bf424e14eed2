package cpu

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/internal/algo"
)

// part is the ranks of a Comm that a new one is made of, in the order of the new one.
type part struct {
	ranks []int // as the old one numbers them
	world group.Members
	topo  algo.Topology
	me    int // this rank's place among them; -1: it is none of them
	node  int // its host
}

// partOf is those ranks of c.
func partOf(c *Comm, ranks []int) part {
	world, nodeOf := make([]int, len(ranks)), make([]int, len(ranks))
	for i, r := range ranks {
		world[i], nodeOf[i] = c.World(r), c.Topology().Node(r)
	}
	p := part{ranks: ranks, world: group.MembersOf(world), me: slices.Index(ranks, c.Rank())}
	if p.me >= 0 {
		p.topo = algo.Placed(nodeOf)
		p.node = p.topo.Node(p.me)
	}
	return p
}

// locals is how many of them are on this rank's host.
func (p *part) locals() int { return p.topo.Locals(p.node) }

// lead is the first of them on this rank's host.
func (p *part) lead() int { return p.ranks[p.topo.Rank(p.node, 0)] }
