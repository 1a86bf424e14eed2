package xpu

import (
	"fmt"

	"github.com/goccl/goccl/internal/lent"
)

// ErrClosed is in the errors of calls on freed memory and on closed queues and events.
var ErrClosed = lent.ErrClosed

// OnLeak has f told, from then on, of what the garbage collector finds although it was not given back: what it was, and
// where it was made. GOCCL_LEAKS=1 in the environment logs it.
func OnLeak(f func(text string)) { lent.OnLeak(f) }

var errNil = fmt.Errorf("xpu: used without having been made: %w", ErrClosed)

// resource is something of SYCL's that has to be given back: memory, a queue, an event.
type resource struct {
	dev  int
	lent *lent.Resource
}

func newResource(dev int, what string, h uintptr) *resource {
	return &resource{dev, lent.New("xpu", dev, what, h)}
}

// handle is SYCL's; ok is false once it has been given back.
func (r *resource) handle() (h uintptr, ok bool) {
	if r == nil {
		return 0, false
	}
	return r.lent.Handle()
}

// use is the handle, for a call.
func (r *resource) use() (uintptr, error) {
	if r == nil {
		return 0, errNil
	}
	return r.lent.Use()
}

// device is the number of the device, -1 of nothing.
func (r *resource) device() int {
	if r == nil {
		return -1
	}
	return r.dev
}

// close gives the resource back with free, once.
func (r *resource) close(free func(h uintptr) error) error {
	if r == nil {
		return errNil
	}
	return r.lent.Close(func(h uintptr) error { return r.check(free(h)) })
}

// check is err with the device.
func (r *resource) check(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("xpu: device %d: %w", r.dev, err)
}
