package cpu

import (
	"context"
	"fmt"
)

// What the ranks that have agreed make of it: memory on each host, and the Comm.

// make makes the memory for this host's part of the proposal, if this rank is the first
// of its host in it.
func (a *agreement) make(ranks []int32) (uint64, error) {
	a.drop()
	node, first, locals := a.c.topo.Node(a.rank), -1, 0
	for _, r := range ranks {
		if a.c.topo.Node(int(r)) == node {
			if first < 0 {
				first = int(r)
			}
			locals++
		}
	}
	if first != a.rank {
		return 0, nil
	}
	off, err := a.c.site.host.Alloc(regionBytes(locals))
	if err != nil {
		return 0, err
	}
	a.made, a.madeFor = off, locals
	return off, nil
}

// drop frees the memory of a proposal that came to nothing.
func (a *agreement) drop() {
	if a.made != 0 {
		a.c.site.host.Forget(a.made, regionBytes(a.madeFor)) // others may have heard of it
		a.made = 0
	}
}

// Shrink makes the Comm of the ranks that are alive. All of them must call it.
func (c *Comm) Shrink(ctx context.Context, opt Options) (*Comm, *Fault) {
	a, f := c.shrink.agree(ctx)
	if f != nil {
		return nil, f
	}
	return c.decided(a, opt)
}

// decided makes the Comm that a has decided.
func (c *Comm) decided(a *agreement, opt Options) (*Comm, *Fault) {
	world, nodeOf, me := make([]int, len(a.Ranks)), make([]int, len(a.Ranks)), -1
	node, hosts := -1, map[int]int{}
	for i, r := range a.Ranks {
		world[i], nodeOf[i] = c.members.world(int(r)), c.topo.Node(int(r))
		if _, ok := hosts[nodeOf[i]]; !ok {
			hosts[nodeOf[i]] = len(hosts)
		}
		if int(r) == a.rank {
			me, node = i, hosts[nodeOf[i]]
		}
	}
	if me < 0 || len(a.Offs) != len(hosts) {
		return nil, fault(Backend, c.rank, "the ranks agreed on what makes no sense: %d hosts, memory for %d", len(hosts), len(a.Offs))
	}
	id := childID(c.id, uint64(a.attempt)|1<<40, int(a.Ballot()))
	c.site.hold()
	child, err := newComm(c.site, id, membersOf(world), topology(dense(nodeOf), len(hosts)), me, a.Offs[node], opt)
	if err != nil { // the others have decided on this rank as well, and are to shrink once more, without it
		a.isLost(fmt.Errorf("it cannot make its part of the new Comm: %w", err))
		c.site.leave()
		return nil, fault(Backend, c.rank, "%w", err)
	}
	child.disturb = c.disturb
	return child, nil
}
