package plane

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
)

// Late is a timeout whose cause is err, with the ranks of this host that have not come to this rank's last collective.
func (c *Member) Late(err error) *call.Fault {
	return c.Unfinished(context.DeadlineExceeded, err, c.Behind())
}

// RanksHere is how many ranks of the job live in this process.
func (c *Member) RanksHere() int { return int(c.Site.here.Load()) }

// OtherCallAt finds a rank of this host whose collective of that number was another. A rank that has
// not come yet is not looked at: it will look itself.
func (c *Member) OtherCallAt(place uint64) *call.Fault {
	mine, ok := c.Local.Made(c.Me, place)
	for r := range c.N {
		if r == c.Me || !ok {
			continue
		}
		if theirs, ok := c.Local.Made(r, place); ok && theirs.Hash != mine.Hash {
			return c.Differs(r, place)
		}
	}
	return nil
}

// Odd finds a rank that has made another call than this one, in calls that cannot look for themselves: of this host,
// or of another that has told of its calls. It may be called from any goroutine.
func (c *Member) Odd() *call.Fault {
	if c.Topo.Nodes() > 1 && !c.Opt.Unchecked {
		c.note.Lock()
		s, _, ok := c.status(c.Site.Clock())
		c.note.Unlock()
		if ok && s.Calls > 0 {
			if f := c.compareHeard(&s); f != nil {
				return f
			}
		}
	}
	c.Life.Lock()
	defer c.Life.Unlock()
	if c.Gone {
		return nil
	}
	place, mine := c.Local.Collective(c.Me)
	for r := range c.N {
		if w := c.Local.Entered(r).Load(); w>>32 == mine>>32 && w != mine {
			return c.Differs(r, place)
		}
	}
	return c.OtherCallAt(place)
}

// Behind lists the ranks that have not come to this rank's last collective and keep the others waiting: of those that
// are behind, as far as is known, the ones that are furthest, and of those again the ones that do not wait themselves.
func (c *Member) Behind() []int {
	type place struct {
		ahead int32 // of this rank
		waits bool
	}
	mine := uint32(c.Local.Entered(c.Me).Load() >> 32)
	var late []int
	var last place
	add := func(rank int, calls uint32, waits bool) {
		p := place{int32(calls - mine), waits}
		switch {
		case p.ahead >= 0:
			return
		case late == nil || p.ahead < last.ahead || p.ahead == last.ahead && last.waits && !p.waits:
			late, last = nil, p
		case p != last:
			return
		}
		late = append(late, rank)
	}
	for r := range c.N {
		add(c.LocalRank(r), uint32(c.Local.Entered(r).Load()>>32), c.Local.Waits(r).Load() != 0)
	}
	for _, s := range c.Site.Statuses.Of(c.id) {
		if c.Topo.Node(int(s.Rank)) != c.Topo.Node(c.rank) {
			add(int(s.Rank), uint32(s.Calls), s.Doing == status.Waits)
		}
	}
	slices.Sort(late)
	return late
}

// lateHere lists those of this host.
func (c *Member) lateHere() []int {
	var late []int
	mine := uint32(c.Local.Entered(c.Me).Load() >> 32)
	for r := range c.N {
		if int32(uint32(c.Local.Entered(r).Load()>>32)-mine) < 0 {
			late = append(late, c.LocalRank(r))
		}
	}
	return late
}

// closedLate finds a rank of this host that has closed the Comm before the collective
// that this rank is in.
func (c *Member) closedLate() *call.Fault {
	for _, r := range c.lateHere() {
		if c.Local.State(c.Topo.Local(r)).Load() == region.StateClosed {
			return call.NewFault(call.Closed, r, "")
		}
	}
	return nil
}
