package gpu

import (
	"context"

	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Stream is a first-in, first-out queue of work on a device. A *Stream is a ccl.Stream.
type Stream[P Platform] struct {
	_         [0]P
	rt        *rt.Runtime
	lent      *lent.Resource
	observers rt.Observers
	capture   capture
}

// NewStream makes a stream. It and the default stream do not wait for each other.
func (d Device[P]) NewStream() (*Stream[P], error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	h, c := drv.NewStream(d.n)
	if c != rt.Success {
		return nil, d.check(c, "StreamCreateWithFlags")
	}
	return &Stream[P]{rt: d.rt, lent: lend(d.rt, d.n, "stream", "StreamDestroy", h, rt.Driver.CloseStream)}, nil
}

// StreamOf returns a Stream for one that other code made on d, by its handle (cudaStream_t or hipStream_t; 0 is the
// default stream). Closing it leaves the other code's stream alone.
func (d Device[P]) StreamOf(handle uintptr) (*Stream[P], error) {
	if _, err := d.ready(); err != nil {
		return nil, err
	}
	return &Stream[P]{rt: d.rt, lent: lent.Borrowed(d.rt.Package, d.n, "stream", handle)}, nil
}

// lend accounts for what a driver has made on a device, and gives back with free, which the library calls call.
func lend(r *rt.Runtime, dev int, what, call string, h uintptr,
	free func(d rt.Driver, dev int, h uintptr) rt.Code) *lent.Resource {
	return lent.New(r.Package, dev, what, h, func(h uintptr) error { return r.Check(free(r.Driver, dev, h), call, dev) })
}

// of is s's resource, nil if there is none.
func (s *Stream[P]) of() *lent.Resource {
	if s == nil {
		return nil
	}
	return s.lent
}

// check makes an error of the result of a call.
func (s *Stream[P]) check(c rt.Code, call string) error { return s.rt.Check(c, call, s.Device()) }

// Handle returns the cudaStream_t or hipStream_t; ok is false once s is closed. 0 is a valid handle.
func (s *Stream[P]) Handle() (h uintptr, ok bool) {
	if s == nil || s.lent == nil || s.lent.Gone.Load() != nil {
		return 0, false
	}
	return s.lent.H, true
}

// Device returns the number of the device.
func (s *Stream[P]) Device() int { return s.of().Device() }

// Platform returns "cuda" or "rocm".
func (s *Stream[P]) Platform() string {
	if s == nil || s.rt == nil {
		return ""
	}
	return s.rt.Package
}

// Synchronize waits for all work that was issued to s. It blocks an OS thread and cannot be interrupted; see Wait.
func (s *Stream[P]) Synchronize() error {
	h, err := s.of().Use()
	if err != nil {
		return err
	}
	passed := s.syncing()
	c := s.rt.Driver.SyncStream(s.Device(), h)
	if c == rt.Success {
		call(passed)
	}
	return s.check(c, "StreamSynchronize")
}

// Query reports whether all work that was issued to s is done.
func (s *Stream[P]) Query() (done bool, err error) {
	h, err := s.of().Use()
	if err != nil {
		return false, err
	}
	passed := s.syncing()
	c := s.rt.Driver.QueryStream(s.Device(), h)
	switch c {
	case rt.NotReady:
		return false, nil
	case rt.Success:
		call(passed)
	}
	return c == rt.Success, s.check(c, "StreamQuery")
}

// Wait waits as Synchronize does, but also returns when ctx ends; the work then goes on. It polls
// at growing intervals of at most 200 microseconds.
func (s *Stream[P]) Wait(ctx context.Context) error { return lent.Poll(ctx, s.Query) }

// WaitEvent makes work that is issued to s from now on wait for the work that e has recorded.
func (s *Stream[P]) WaitEvent(e *Event[P]) error {
	h, event, err := lent.UseBoth(s.of(), e.of())
	if err != nil {
		return err
	}
	return s.check(s.rt.Driver.WaitEvent(s.Device(), h, event), "StreamWaitEvent")
}

// Close releases the stream. Work that was issued to it still runs.
func (s *Stream[P]) Close() error {
	if _, open := s.Handle(); open {
		for _, o := range s.observers.Live() {
			o.Closing()
		}
		s.endCapture()
	}
	return s.of().Close()
}
