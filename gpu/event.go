package gpu

import (
	"context"
	"time"

	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Event is a mark in a stream that work can wait for, and that measures times.
type Event[P Platform] struct {
	_    [0]P
	rt   *rt.Runtime
	lent *lent.Resource
}

// NewEvent makes an event that can measure times.
func (d Device[P]) NewEvent() (*Event[P], error) { return d.newEvent(true) }

// NewMark makes an event that cannot measure times. It is cheaper to record and to wait for.
func (d Device[P]) NewMark() (*Event[P], error) { return d.newEvent(false) }

func (d Device[P]) newEvent(timing bool) (*Event[P], error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	h, c := drv.NewEvent(d.n, timing)
	if c != rt.Success {
		return nil, d.check(c, "EventCreateWithFlags")
	}
	return &Event[P]{rt: d.rt, lent: lend(d.rt, d.n, "event", "EventDestroy", h, rt.Driver.CloseEvent)}, nil
}

// of is e's resource, nil if there is none.
func (e *Event[P]) of() *lent.Resource {
	if e == nil {
		return nil
	}
	return e.lent
}

// check makes an error of the result of a call.
func (e *Event[P]) check(c rt.Code, call string) error { return e.rt.Check(c, call, e.lent.Dev) }

// Record moves the mark to the present end of s.
func (e *Event[P]) Record(s *Stream[P]) error {
	h, stream, err := lent.UseBoth(e.of(), s.of())
	if err != nil {
		return err
	}
	return e.check(e.rt.Driver.Record(e.lent.Dev, h, stream), "EventRecord")
}

// Query reports whether the stream has passed the mark. An event that was never recorded counts as passed.
func (e *Event[P]) Query() (done bool, err error) {
	h, err := e.of().Use()
	if err != nil {
		return false, err
	}
	c := e.rt.Driver.QueryEvent(e.lent.Dev, h)
	if c == rt.NotReady {
		return false, nil
	}
	return c == rt.Success, e.check(c, "EventQuery")
}

// Synchronize waits until the stream has passed the mark. It blocks an OS thread and cannot be interrupted; see Wait.
func (e *Event[P]) Synchronize() error {
	h, err := e.of().Use()
	if err != nil {
		return err
	}
	return e.check(e.rt.Driver.SyncEvent(e.lent.Dev, h), "EventSynchronize")
}

// Wait waits as Synchronize does, but also returns when ctx ends.
func (e *Event[P]) Wait(ctx context.Context) error { return lent.Poll(ctx, e.Query) }

// Since returns the time on the device from start to e. Both must be made by NewEvent and be passed.
func (e *Event[P]) Since(start *Event[P]) (time.Duration, error) {
	h, from, err := lent.UseBoth(e.of(), start.of())
	if err != nil {
		return 0, err
	}
	ms, c := e.rt.Driver.Elapsed(e.lent.Dev, from, h)
	return time.Duration(float64(ms) * float64(time.Millisecond)), e.check(c, "EventElapsedTime")
}

// Close releases the event. Work that waits for it still does.
func (e *Event[P]) Close() error { return e.of().Close() }
