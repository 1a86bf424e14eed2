package plane

import (
	"context"
	"net/netip"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// Reports of failures on other hosts. What a rank finds out on a connection of a call is often the
// echo of a failure that is reported on the control plane, and the report says more: its code, and
// which rank is at fault. So the rank waits for the report before it blames the rank at the other
// end. How long a report may take depends on the machines: with hundreds of processes to a
// processor each of the processes that it passes waits for seconds for its turn.

// reportAfter is for how long a process may say nothing where nobody is given up for silence.
const reportAfter = 5 * time.Second

// SoonFor is how long a report takes at most where processes run: longer than a proposal waits for
// its decision before it is believed without, and that takes to come from its host.
const SoonFor = 2 * SettleFor

// ReportWithin is how long the process of s waits for another process to report a failure. A
// process that is silent for longer is lost, which is reported itself, unless there is no such
// limit.
func ReportWithin(s *Site) time.Duration {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	limit := s.Here.silence()
	if s.Job.peer <= 0 {
		limit = max(limit, reportAfter)
	}
	return SoonFor + limit
}

// LossReportWithin is how long the process of s waits for the report on rank w of the world, which
// does not listen or answer any more. That is ReportWithin, since its host may say so late; but no
// longer than any report takes where nobody is left there to say anything: when a whole host dies,
// each of its processes would else be found only that much after the one before it.
func LossReportWithin(s *Site, w int) time.Duration {
	if isDeserted(s, s.Job.World.Topo.Node(w)) {
		return SoonFor
	}
	return ReportWithin(s)
}

// isDeserted reports whether the lead of host h was lost, the next has not come, and nobody listens there any more.
func isDeserted(s *Site, h int) bool {
	s.Job.mu.Lock()
	lost := s.Job.World.vacant[h] == lostHost
	s.Job.mu.Unlock()
	return lost && allRefuse(s, h)
}

// allRefuse reports whether no process of host h listens any more, as the host itself says.
func allRefuse(s *Site, h int) bool {
	var last netip.AddrPort
	for l := range s.Job.World.Topo.Locals(h) {
		addr := s.Job.Net.Addrs.At(s.Job.World.Topo.Rank(h, l))
		if addr != last && !tcp.Refuses(s.Job.Net.At, addr, refusesWithin) {
			return false
		}
		last = addr
	}
	return true
}

// AwaitReport waits for the cause of a failure of which c has found an echo, for limit at most. It
// returns the cause, or nil if none will come: the call under way outlives the end of a process, or
// over says so, which is asked again and again. A call that has taken Options.Timeout waits no
// longer than a report takes where processes run: it has found who is to blame, and a timeout may
// name others; but where all calls take so long at once, the report says why. A process that is
// kept from running is kept from hearing, too: so these limits are time lived.
func AwaitReport(ctx context.Context, c *Member, limit time.Duration, over func() bool) *call.Fault {
	soon := briefly(c.Site.Job, SoonFor) // as proposals wait
	AwaitFailure(c, limit, func() bool { return ctx.Err() != nil || over() || soon() && isOverdue(c) })
	if err := ctx.Err(); err != nil && c.Fate.Cause() == nil {
		return c.Stop(Unfinished(c, err, err))
	}
	return c.Fate.Cause()
}

// AwaitFailure is AwaitReport beside the calls of c. It reports whether c has failed, or is to fail
// after the call under way.
func AwaitFailure(c *Member, limit time.Duration, over func() bool) bool {
	failed := func() bool { return c.Fate.Cause() != nil || c.Fate.Outlived() != nil }
	await(c.Site.Job, limit, func() bool {
		c.Site.Scan()
		return failed() || over()
	})
	return failed()
}

// LeftYet is the question whether the process of rank w of the world is known to have left in good
// order. A process that asks for the first time asks w's host, too, and again later; the answer
// takes a moment.
func LeftYet(s *Site, w int) func() bool { return s.leftYet(w) }
