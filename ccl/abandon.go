package ccl

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/internal/lived"
)

// ExitStuck is the exit status of a process that ends itself because a call has failed that its library cannot
// interrupt: MPI has no way to leave a collective whose peers do not come.
const ExitStuck = 70

// stuckAfter is how long such a call may still take, after the failure, to come back by itself.
const stuckAfter = time.Second

// abandon ends what the library is doing for c, since that has failed with e. Where it cannot be ended the
// process is, with the report: to wait for ever would be worse.
func (l *library) abandon(c *Comm, e *Error) {
	l.end.Abort()
	if l.loaded.Interruptible {
		return
	}
	over, end := lived.Within(context.Background(), stuckAfter)
	context.AfterFunc(over, func() {
		defer end()
		if !l.end.Running() {
			return
		}
		c.opt.Log.Error("the call cannot be interrupted: this process ends", "error", e, "library", l.loaded.Version,
			"exit", ExitStuck)
		// No call returns that would name itself in its error.
		fmt.Fprintf(os.Stderr, "%v; last calls: %s\n%s cannot leave a call whose peers never arrive: this process exits with status %d\n",
			e, callsText(c.rec.kept(&c.backlog, shownCalls)), l.loaded.Version, ExitStuck)
		l.endJob()
		os.Exit(ExitStuck)
	})
}

// readFor is how long a launcher has to read what a process has said last: Hydra drops the rest
// when it is told to end the job.
const readFor = 500 * time.Millisecond

// endJob has the library tell its launcher that the job is over, for a while: a thread of this process is inside the
// library, which may never answer.
func (l *library) endJob() {
	if l.loaded.EndJob == nil {
		return
	}
	time.Sleep(readFor)
	limit, end := lived.Within(context.Background(), time.Second)
	go func() {
		defer end()
		l.loaded.EndJob(ExitStuck)
	}()
	<-limit.Done()
}
