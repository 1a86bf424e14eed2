package ccl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/plain"
)

// wishes are what Within and From ask for, nil where neither does.
type wishes struct {
	limit time.Duration // 0: none
	place *string       // nil: where the call is made
}

// Within returns q for calls that may each take at most d from when they begin, as a blocking call
// with a deadline may; time for which the process is stopped does not count. A call that takes
// longer fails the Comm with ErrTimeout, and Missing names the late ranks. While a call waits
// behind others, Options.Timeout counts. A Group has the limit of the Queue whose Group it is.
// Ranks may give one call different limits. A d of 0 is no limit but Options.Timeout; a negative
// one is refused, and so is a Queue on a device's stream.
func (q Queue) Within(d time.Duration) Queue {
	switch {
	case q.c == nil || q.err != nil:
	case d < 0:
		q.err = q.c.refuse("Within", ErrArgument, fmt.Errorf("the limit is %v; 0 is none", d))
	case q.dev != nil && d > 0:
		q.err = q.c.refuse("Within", ErrUnsupported,
			errors.New("calls on a device cannot be ended one by one: Options.Timeout is the limit of all"))
	default:
		q.with = q.with.copy()
		q.with.limit = d
	}
	return q
}

// From returns q for calls that errors and reports place at such as "train.py:88", in place of the
// line of Go that makes them: for a binding, in which that line is always the same. If place is
// empty, they say no place, and issuing is a little cheaper.
func (q Queue) From(place string) Queue {
	if q.c != nil {
		q.with = q.with.copy()
		if place = plain.Text(place); len(place) > mostPlace {
			place = strings.ToValidUTF8(place[:mostPlace], "")
		}
		q.with.place = &place
	}
	return q
}

// mostPlace is how long a place is at most that reports show.
const mostPlace = 120

// at is the place that w asks for.
func (w *wishes) at() *string {
	if w == nil {
		return nil
	}
	return w.place
}

func (w *wishes) copy() *wishes {
	if w == nil {
		return new(wishes)
	}
	c := *w
	return &c
}

// now makes a call that c blocks in as w asks.
func (w *wishes) now(c *Comm, a *args) error {
	if w == nil {
		return c.block(context.Background(), a)
	}
	ctx, end := limited(c.eng.Control().Site.Job.Background(), w.limit)
	defer end()
	c.rec.callers.fix(w.place)
	defer c.rec.callers.fix(nil)
	return c.block(ctx, a)
}
