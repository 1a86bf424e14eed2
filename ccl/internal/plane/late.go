package plane

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
)

// awaited is the rank of the world that this one waits for in s, -1 if that is not known. c.note is locked.
func (c *Standing) awaited(s *status.Status) int32 {
	if s.Doing != status.Waits {
		return -1
	}
	if !s.Call.Kind.Pairwise() {
		var late []int
		if !c.share.Look(func() { late = c.LateRanks() }) {
			return -1
		}
		if len(late) > 0 {
			return int32(c.group.World(late[0]))
		}
	}
	if s.Peer < 0 {
		return -1
	}
	return int32(c.group.World(int(s.Peer)))
}

// circleOf names the deadlock of which rank me of a Comm is a part, if it is in one. It reads like:
// deadlock: rank 0 waits for 1 in tp #5, 1 for 0 in dp #7
// A circle of one reads like:
// deadlock: rank 0 waits for itself in tp #5, in Send
func circleOf(all []status.Status, comm uint64, me int32) string {
	circle := status.Circle(all)
	if !slices.ContainsFunc(circle, func(w status.Wait) bool { return w.Comm == comm && w.Rank == me }) {
		return ""
	}
	first := 0 // all ranks of it are to say the same
	for i, w := range circle {
		if w.World < circle[first].World {
			first = i
		}
	}
	if len(circle) == 1 {
		w := circle[0]
		return fmt.Sprintf("deadlock: rank %d waits for itself in %s #%d, in %v", w.World, w.Name(), w.Call.Seq, w.Call.Kind)
	}
	text, format := "deadlock: rank", " %d waits for %d in %s #%d"
	for i := range circle {
		w := circle[(first+i)%len(circle)]
		text += fmt.Sprintf(format, w.World, w.On, w.Name(), w.Call.Seq)
		format = ", %d for %d in %s #%d"
	}
	if verb := allIn(circle); verb != "" {
		text += ", " + verb
	}
	return text
}

// allIn says what all ranks of a circle are in, where that alone is why they wait.
func allIn(circle []status.Wait) string {
	all := func(k call.Kind) bool {
		return !slices.ContainsFunc(circle, func(w status.Wait) bool { return w.Call.Kind != k })
	}
	switch {
	case all(call.Recv):
		return "all in Recv"
	case all(call.Send):
		return "all in Send"
	}
	return ""
}

// IsOverdue reports whether a call that began at coarse time began has taken Options.Timeout, not
// counting the time in which this process was stopped or had no processor. In that time the process
// could not hear the other ranks, nor tell them where it stands.
func (c *Standing) IsOverdue(began, now int64) bool {
	t := &c.Site.Job.Time
	missed := t.Lived.MissedSince(t.Coarse.Born.Add(time.Duration(began)))
	return time.Duration(now-began)-missed > c.group.Timeout()
}

// LateRanks lists the ranks that have not come to this rank's last collective and keep the others
// waiting: of those that are behind, as far as is known, the ones that are furthest, and of those
// again the ones that do not wait themselves. Of a roll call it is all that are behind.
func (c *Standing) LateRanks() []int { return c.lateRanks(nil, true) }

// lateRanks is LateRanks. What ranks of other hosts have answered counts for more than what they
// told before, if that counts at all.
func (c *Standing) lateRanks(answered map[int]*status.Status, told bool) []int {
	mine := uint32(c.share.Local.Entered(c.share.Me).Load() >> 32)
	late := laggards{all: c.callsRoll()}
	for r := range c.share.N {
		late.add(c.group.LocalRank(r), uint32(c.share.Local.Entered(r).Load()>>32)-mine, c.share.Local.Waits(r).Load() != 0)
	}
	c.Site.Job.Statuses.Each(c.group.ID(), func(s *status.Status) {
		if told && !c.group.IsHere(int(s.Rank)) && answered[int(s.Rank)] == nil {
			late.add(int(s.Rank), uint32(s.Calls)-mine, s.Doing == status.Waits)
		}
	})
	for r, s := range answered {
		if !c.group.IsHere(r) {
			late.add(r, uint32(s.Calls)-mine, s.Doing == status.Waits)
		}
	}
	slices.Sort(late.ranks)
	return late.ranks
}

// callsRoll reports whether this rank's last collective is to name all ranks that have not come.
func (c *Standing) callsRoll() bool {
	calls, _ := c.share.Local.Collective(c.share.Me)
	last, ok := c.share.Local.Made(c.share.Me, calls)
	return ok && last.Kind == call.MonitoredBarrier
}

// unposted lists the other ranks of this host that have not posted this rank's round, as LateRanks.
func (c *Standing) unposted() []int {
	var late laggards
	for r := range c.share.N {
		if w := c.share.Local.Waits(r).Load(); r != c.share.Me {
			late.add(c.group.LocalRank(r), c.share.Local.Posted(r, c.order.Round)-c.order.Round,
				w != 0 && w>>32 == c.order.Calls&math.MaxUint32)
		}
	}
	return late.ranks
}

// laggards are the ranks that are furthest behind this one, and of those the ones that do not wait
// themselves; or all that are behind.
type laggards struct {
	ranks []int
	ahead int32 // of this rank
	waits bool
	all   bool
}

// add adds a rank if it is one of them. ahead counts modulo 2^32.
func (l *laggards) add(rank int, ahead uint32, waits bool) {
	switch a := int32(ahead); {
	case a >= 0:
	case l.all:
		l.ranks = append(l.ranks, rank)
	case l.ranks == nil || a < l.ahead || a == l.ahead && l.waits && !waits:
		*l = laggards{ranks: []int{rank}, ahead: a, waits: waits}
	case a == l.ahead && waits == l.waits:
		l.ranks = append(l.ranks, rank)
	}
}

// closedLate finds a rank of this host that has closed the Comm before the collective
// that this rank is in.
func (c *Share) closedLate() *call.Fault {
	mine := uint32(c.Local.Entered(c.Me).Load() >> 32)
	for r := range c.N {
		if int32(uint32(c.Local.Entered(r).Load()>>32)-mine) < 0 && c.Local.State(r).Load() == region.StateClosed {
			return c.closedBy(c.group.LocalRank(r))
		}
	}
	return nil
}

// closedBy is the failure of the Comm since rank r of this host has closed it, with the collective that was r's last.
func (c *Share) closedBy(r int) *call.Fault {
	f := call.NewFault(call.Closed, r, "")
	l := c.group.Topology().Local(r)
	place, _ := c.Local.Collective(l)
	if last, ok := c.Local.Made(l, place); ok && last.Kind != 0 {
		f.Theirs = &last
	}
	return f
}
