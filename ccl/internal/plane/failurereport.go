package plane

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
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

// LeftYet is the question whether the process of rank w of the world has said that it leaves in good
// order, of one whose connection has ended without a farewell. A process that asks for the first
// time asks w's host, too, and again later; the answer takes a moment. That the lead of w's host has
// left, and no other has come, is not enough here (see gone.Ranks.HasLeft): w may have died just before
// it came.
func LeftYet(s *Site, w int) func() bool {
	return s.leftYet(w, func(w int) bool {
		s.Job.mu.Lock()
		defer s.Job.mu.Unlock()
		return s.Job.World.Of(w).Left
	})
}
