package plane

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// News of other hosts. What a rank finds out on a connection of a call is often the echo of a failure that is reported on the
// control plane, and the report says more: its code, and which rank is at fault. So the rank waits for the report before it blames the
// rank at the other end. How long a report may take depends on the machines: with hundreds of processes to a processor each
// of the processes that it passes waits for seconds for its turn.

// newsAfter is for how long a process may say nothing where nobody is given up for silence.
const newsAfter = 5 * time.Second

// SoonFor is how long a report takes at most where processes run: longer than a proposal waits for its decision before it is
// believed without, and that takes to come from its host.
const SoonFor = 2 * SettleFor

// NewsWithin is how long the process of s waits for what another must have to say. One that says nothing for longer is lost, which is
// news itself, unless there is no such limit.
func NewsWithin(s *Site) time.Duration {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	limit := s.Here.silence()
	if s.Job.peer <= 0 {
		limit = max(limit, newsAfter)
	}
	return SoonFor + limit
}

// AwaitReport waits for the cause of a failure of which c has found an echo, for limit at most. It returns the cause, or nil if none
// will come: the call under way outlives the end of a process, or over says so, which is asked again and again. A process that
// is kept from running is kept from hearing, too: so it counts how often it has looked, and not the time.
func AwaitReport(ctx context.Context, c *Member, limit time.Duration, over func() bool) *call.Fault {
	for range limit / tick {
		if f := c.Interrupted(ctx); f != nil {
			return f
		}
		if over() || c.Fate.Outlived() != nil {
			return nil
		}
		c.Site.Scan()
		time.Sleep(tick)
	}
	return c.Fate.Cause()
}

// LeftYet is the question whether the process of rank w of the world is known to have left in good order. Who asks it for the
// first time asks w's host, too; the answer takes a moment.
func LeftYet(s *Site, w int) func() bool { return s.leftYet(w) }
