package xpu

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/internal/sycl"
)

// Event is a mark in a queue, and tells times.
type Event struct{ lent *lent.Resource }

// NewEvent makes an event.
func (d Device) NewEvent() (*Event, error) {
	if _, err := At(d.n); err != nil {
		return nil, err
	}
	e, err := sycl.NewEvent()
	if err != nil {
		return nil, fmt.Errorf("xpu: device %d: %w", d.n, err)
	}
	return &Event{d.lend("event", uintptr(e), func(h uintptr) error { return sycl.Event(h).Close() })}, nil
}

// of is e's resource, nil if there is none.
func (e *Event) of() *lent.Resource {
	if e == nil {
		return nil
	}
	return e.lent
}

// use is the event, for a call.
func (e *Event) use() (sycl.Event, error) {
	h, err := e.of().Use()
	return sycl.Event(h), err
}

// check is err with the device.
func (e *Event) check(err error) error { return on(e.lent.Dev, err) }

// Record puts the mark at the present end of q, and takes it away from where it was before.
func (e *Event) Record(q *Queue) error {
	h, queue, err := lent.UseBoth(e.of(), q.of())
	if err != nil {
		return err
	}
	return e.check(sycl.Event(h).Record(sycl.Queue(queue)))
}

// Query reports whether the queue has passed the mark. An event that was never recorded is passed.
func (e *Event) Query() (done bool, err error) {
	h, err := e.use()
	if err != nil {
		return false, err
	}
	done, err = h.Done()
	return done, e.check(err)
}

// Synchronize waits until the queue has passed the mark. It holds a thread of the system and cannot be ended; see Wait.
func (e *Event) Synchronize() error {
	h, err := e.use()
	if err != nil {
		return err
	}
	return e.check(h.Wait())
}

// Wait is Synchronize that ends with ctx as well.
func (e *Event) Wait(ctx context.Context) error { return lent.Poll(ctx, e.Query) }

// Since is the time on the device from mark start to e, both recorded on queues of this package's, and passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	h, from, err := lent.UseBoth(e.of(), start.of())
	if err != nil {
		return 0, err
	}
	seconds, err := sycl.Event(h).Since(sycl.Event(from))
	return time.Duration(seconds * float64(time.Second)), e.check(err)
}

// Close gives the event back. What waits for it still does.
func (e *Event) Close() error { return e.of().Close() }
