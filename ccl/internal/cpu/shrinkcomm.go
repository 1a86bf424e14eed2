package cpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// What the ranks that have agreed make of it: memory on each host, and the Comm.

// ErrLeftBehind is why a rank takes itself for one that was given up.
var ErrLeftBehind = errors.New("its process stood still, and the others are gone: they have given it up")

// Shrink makes the Comm of the ranks of c that are alive. All of them must call it.
func Shrink(ctx context.Context, c *Comm, opt plane.Options) (*Comm, *call.Fault) {
	a, f := c.shrink.Agree(ctx)
	if f != nil {
		return nil, f
	}
	ranks := make([]int, len(a.Party.Ranks))
	for i, r := range a.Party.Ranks {
		ranks[i] = int(r)
	}
	if a.IsLeftBehind() {
		a.IsLost(ErrLeftBehind)
		return nil, call.NewFault(call.RankLost, c.Rank(), "%w", ErrLeftBehind)
	}
	p := partOf(c, ranks)
	if p.me < 0 {
		return nil, call.NewFault(call.Backend, c.Rank(), "the ranks agreed on what makes no sense: ranks %v", ranks)
	}
	off, ok := a.Memory()
	if !ok {
		return nil, call.NewFault(call.RankLost, c.Rank(), "the others have gone on to their next Shrink")
	}
	id := group.ChildID(c.ID(), uint64(a.Attempt)|1<<40, int(a.Party.Ballot()))
	c.rank.Site.Job.Hold()
	child, err := newComm(c.rank.Site, id, p.world, p.topo, p.me, off, opt)
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

// Ended lists the ranks of the world that Shrink left out of c, and whose end was certain: the same
// on all ranks of c. The others it left out were silent or out of reach: see agree.Majority.
func Ended(c *Comm) []int { return c.ended }
