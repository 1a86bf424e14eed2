package gpu

import (
	"context"

	"github.com/goccl/goccl/internal/lent"
)

// Stream is a first-in first-out queue of work on a device. It is a ccl.Stream.
type Stream struct {
	*resource
	borrowed  bool // someone else's, or the default stream
	observers observers
	capture   capture
}

// NewStream makes a stream. It and the default stream do not wait for each other.
func (d Device) NewStream() (*Stream, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	h, c := drv.newStream(d.n)
	if c != success {
		return nil, d.rt.check(c, "StreamCreateWithFlags", d.n)
	}
	return &Stream{resource: newResource(d.rt, d.n, "stream", "StreamDestroy", h)}, nil
}

// StreamOf returns a Stream for one that other code made on d, by its handle (cudaStream_t or hipStream_t; 0 is the
// default stream). Closing it leaves the other code's stream alone.
func (d Device) StreamOf(handle uintptr) (*Stream, error) {
	if _, err := d.ready(); err != nil {
		return nil, err
	}
	return &Stream{resource: &resource{rt: d.rt, dev: d.n, lent: lent.Borrowed(d.rt.pkg, d.n, "stream", handle)}, borrowed: true}, nil
}

// use is the handle, for a call.
func (s *Stream) use() (uintptr, error) {
	if s == nil {
		return 0, errNil
	}
	return s.resource.use()
}

// Handle returns the cudaStream_t or hipStream_t; ok is false once s is closed. 0 is a valid handle.
func (s *Stream) Handle() (h uintptr, ok bool) {
	if s == nil {
		return 0, false
	}
	return s.handle()
}

// Device returns the number of the device.
func (s *Stream) Device() int {
	if s == nil {
		return -1
	}
	return s.device()
}

// Synchronize waits for all work that was issued to s. It blocks an OS thread and cannot be interrupted; see Wait.
func (s *Stream) Synchronize() error {
	h, err := s.use()
	if err != nil {
		return err
	}
	passed := s.syncing()
	c := s.rt.drv.syncStream(s.dev, h)
	if c == success {
		call(passed)
	}
	return s.rt.check(c, "StreamSynchronize", s.dev)
}

// Query reports whether all work that was issued to s is done.
func (s *Stream) Query() (done bool, err error) {
	h, err := s.use()
	if err != nil {
		return false, err
	}
	passed := s.syncing()
	c := s.rt.drv.queryStream(s.dev, h)
	switch c {
	case notReady:
		return false, nil
	case success:
		call(passed)
	}
	return c == success, s.rt.check(c, "StreamQuery", s.dev)
}

// Wait waits as Synchronize does, but also returns when ctx ends; the work then goes on. It polls at growing intervals of
// at most 200 microseconds.
func (s *Stream) Wait(ctx context.Context) error { return lent.Poll(ctx, s.Query) }

// WaitEvent makes work that is issued to s from now on wait for the work that e has recorded.
func (s *Stream) WaitEvent(e *Event) error {
	h, err := s.use()
	if err != nil {
		return err
	}
	event, err := e.use()
	if err != nil {
		return err
	}
	if err := s.same(e.resource); err != nil {
		return err
	}
	return s.rt.check(s.rt.drv.waitEvent(s.dev, h, event), "StreamWaitEvent", s.dev)
}

// Close releases the stream. Work that was issued to it still runs.
func (s *Stream) Close() error {
	if s == nil {
		return errNil
	}
	if _, open := s.handle(); open {
		for _, o := range s.observers.live() {
			o.Closing()
		}
		s.endCapture()
	}
	return s.close(func(h uintptr) code {
		if s.borrowed {
			return success
		}
		return s.rt.drv.closeStream(s.dev, h)
	})
}
