package ccl

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// MonitoredBarrier is [Barrier] that says which ranks have not come, all of them, when the deadline
// of rank 0's ctx passes: the error of rank 0 lists them in Missing. A Barrier names those that its
// algorithm waits for, which over a network may be one of several. All ranks must call it. Like any
// call that does not end, it then fails c on all ranks. Rank 0 hears from each of the others, so it
// costs more than Barrier.
func MonitoredBarrier(ctx context.Context, c *Comm) error {
	if err := noContext(ctx, c, "MonitoredBarrier"); err != nil {
		return err
	}
	if c.isNil() {
		return refuseNone("MonitoredBarrier")
	}
	if c.Rank() > 0 {
		token := []uint8{arrived}
		if err := Send(ctx, c, token, 0); err != nil {
			return err
		}
		return Recv(ctx, c, token, 0)
	}
	tokens := make([]uint8, c.Size())
	each := func(f func(g Queue, token Buf, r int)) Work {
		return c.On(nil).Within(remaining(ctx)).Group(func(g Queue) error {
			for r := 1; r < len(tokens); r++ {
				f(g, BufOf(tokens[r:r+1]), r)
			}
			return nil
		})
	}
	err := within(ctx, c, each(func(g Queue, token Buf, r int) { g.Recv(token, r) }))
	if err == nil {
		return within(ctx, c, each(func(g Queue, token Buf, r int) { g.Send(token, r) }))
	}
	var e *Error
	if errors.As(err, &e) && e.Code == ErrTimeout {
		e.Missing = nil
		for r := 1; r < len(tokens); r++ {
			if tokens[r] != arrived {
				e.Missing = append(e.Missing, r)
			}
		}
		e.Op, e.Mine, e.Peer = "MonitoredBarrier", nil, -1
	}
	return err
}

// arrived is what ranks send to rank 0.
const arrived = 1

// remaining is how long ctx lasts yet, 0 if it has no deadline.
func remaining(ctx context.Context) time.Duration {
	until, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(until), 1)
}

// within waits for w, and fails c if ctx ends first, as a blocking call does.
func within(ctx context.Context, c *Comm, w Work) error {
	err := w.Wait(ctx)
	if done, ended := w.Test(); done { // err may be that of ctx, which has ended a moment before
		return ended
	} else if ctx.Err() == nil {
		return err
	}
	if c.life.enter() {
		c.eng.Ended(call.ContextFault(ctx.Err()))
		c.life.busy.Clear()
	}
	return w.Wait(context.Background())
}
