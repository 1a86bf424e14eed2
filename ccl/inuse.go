package ccl

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goccl/goccl/internal/lived"
)

// placeWait is how long a refused goroutine waits for the call of the other one to be one of which
// the place is known: it is, once that call has slept.
const placeWait = 20 * time.Millisecond

// usedElsewhere reports whether a blocking call of another goroutine is under way on c, as far as
// the goroutine can tell that is about to make or queue one; what is queued may begin at any
// moment. Two uses at once have one mark that c is in use: the first to leave takes it away, and
// Close would free what the other uses.
func (c *Comm) usedElsewhere() bool {
	l := &c.life
	return l.busy.Load() && !l.runs.Load() && !l.closed.Load() && l.failure.Load() == nil && !c.backlog.pending.Load() &&
		c.eng.Control().Standing.InCall()
}

// inUse is why a goroutine cannot make or queue a call of c: another one is in a call, or issues
// one. Not all calls are found: see InCall of package plane. What finds all is the race detector.
func inUse(c *Comm) error {
	text := "another goroutine is issuing a call on this Comm"
	if c.life.busy.Load() {
		text = "this Comm is in a call of another goroutine"
	}
	for over := lived.For(placeWait); !over() && c.life.busy.Load(); time.Sleep(time.Millisecond) {
		if k, asleep := c.eng.Control().Standing.Sleeping(); asleep {
			first := callOf(&k)
			first.Caller = c.rec.callers.of(k.Seq)
			text += ", " + first.String()
			break
		}
	}
	if at := here(); at != "" {
		text += fmt.Sprintf("; this one is at %s", at)
	}
	return errors.New(text + ". One goroutine at a time may use a Comm and its Queues: Split, or one goroutine that owns the Queue")
}

// here is the place of the program that has called this package.
func here() string {
	var s stack
	runtime.Callers(2, s[:])
	return placeOf(&s)
}
