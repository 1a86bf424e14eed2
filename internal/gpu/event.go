package gpu

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/lent"
)

// Event is a mark in a stream.
type Event struct{ *resource }

// NewEvent makes an event that can measure times.
func (d Device) NewEvent() (*Event, error) { return d.newEvent(true) }

// NewMark makes an event that cannot measure times. It is cheaper to record and to wait for.
func (d Device) NewMark() (*Event, error) { return d.newEvent(false) }

func (d Device) newEvent(timing bool) (*Event, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	h, c := drv.newEvent(d.n, timing)
	if c != success {
		return nil, d.rt.check(c, "EventCreateWithFlags", d.n)
	}
	return &Event{newResource(d.rt, d.n, "event", "EventDestroy", h)}, nil
}

// use is the handle, for a call.
func (e *Event) use() (uintptr, error) {
	if e == nil {
		return 0, errNil
	}
	return e.resource.use()
}

// Record moves the mark to the present end of s.
func (e *Event) Record(s *Stream) error {
	h, err := e.use()
	if err != nil {
		return err
	}
	stream, err := s.use()
	if err != nil {
		return err
	}
	if err := e.same(s.resource); err != nil {
		return err
	}
	return e.rt.check(e.rt.drv.record(e.dev, h, stream), "EventRecord", e.dev)
}

// Query reports whether the stream has passed the mark. An event that was never recorded counts as passed.
func (e *Event) Query() (done bool, err error) {
	h, err := e.use()
	if err != nil {
		return false, err
	}
	c := e.rt.drv.queryEvent(e.dev, h)
	if c == notReady {
		return false, nil
	}
	return c == success, e.rt.check(c, "EventQuery", e.dev)
}

// Synchronize waits until the stream has passed the mark. It blocks an OS thread and cannot be interrupted; see Wait.
func (e *Event) Synchronize() error {
	h, err := e.use()
	if err != nil {
		return err
	}
	return e.rt.check(e.rt.drv.syncEvent(e.dev, h), "EventSynchronize", e.dev)
}

// Wait waits as Synchronize does, but also returns when ctx ends.
func (e *Event) Wait(ctx context.Context) error { return lent.Poll(ctx, e.Query) }

// Since returns the time on the device from start to e. Both must be made by NewEvent and be passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	h, err := e.use()
	if err != nil {
		return 0, err
	}
	from, err := start.use()
	if err != nil {
		return 0, err
	}
	if err := e.same(start.resource); err != nil {
		return 0, err
	}
	ms, c := e.rt.drv.elapsed(e.dev, from, h)
	return time.Duration(float64(ms) * float64(time.Millisecond)), e.rt.check(c, "EventElapsedTime", e.dev)
}

// Close releases the event. Work that waits for it still does.
func (e *Event) Close() error {
	if e == nil {
		return errNil
	}
	return e.close(func(h uintptr) code { return e.rt.drv.closeEvent(e.dev, h) })
}
