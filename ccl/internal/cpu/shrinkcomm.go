package cpu

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// What the ranks that have agreed make of it: memory on each host, and the Comm.

// Shrink makes the Comm of the ranks that are alive. All of them must call it.
func (c *Comm) Shrink(ctx context.Context, opt plane.Options) (*Comm, *call.Fault) {
	a, f := c.shrink.Agree(ctx)
	if f != nil {
		return nil, f
	}
	world, nodeOf, me := make([]int, len(a.Party.Ranks)), make([]int, len(a.Party.Ranks)), -1
	node, hosts := -1, map[int]int{}
	for i, r := range a.Party.Ranks {
		world[i], nodeOf[i] = c.rank.Group.World(int(r)), c.rank.Group.Topology().Node(int(r))
		if _, ok := hosts[nodeOf[i]]; !ok {
			hosts[nodeOf[i]] = len(hosts)
		}
		if int(r) == a.Rank {
			me, node = i, hosts[nodeOf[i]]
		}
	}
	if me < 0 || len(a.Party.Offs) != len(hosts) {
		return nil, call.NewFault(call.Backend, c.Rank(), "the ranks agreed on what makes no sense: %d hosts, memory for %d", len(hosts), len(a.Party.Offs))
	}
	id := group.ChildID(c.ID(), uint64(a.Attempt)|1<<40, int(a.Party.Ballot()))
	c.rank.Site.Job.Hold()
	child, err := newComm(c.rank.Site, id, group.MembersOf(world), group.Topology(group.Dense(nodeOf), len(hosts)), me, a.Party.Offs[node], opt)
	if err != nil { // the others have decided on this rank as well, and are to shrink once more, without it
		a.IsLost(fmt.Errorf("it cannot make its part of the new Comm: %w", err))
		c.rank.Site.Job.Leave()
		return nil, call.NewFault(call.Backend, c.Rank(), "%w", err)
	}
	child.disturb = c.disturb
	for _, r := range a.Party.Ended {
		child.ended = append(child.ended, c.rank.Group.World(int(r)))
	}
	return child, nil
}

// Ended lists the ranks of the world that Shrink left out of c, and whose end was certain: the same on all ranks of c. The
// others it left out were silent or out of reach: see agree.Majority.
func Ended(c *Comm) []int { return c.ended }
