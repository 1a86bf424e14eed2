package gpu

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// resource is something of the runtime's that has to be given back: memory, a stream, an event, a graph.
type resource struct {
	rt      *Runtime
	dev     int
	what    string // "stream", "memory of 4096 bytes"
	call    string // that gives it back: "StreamDestroy"
	h       uintptr
	closed  atomic.Pointer[origin] // where it was given back; nil while it is there
	made    *origin
	cleanup runtime.Cleanup
}

// newResource wraps what the runtime has just made.
func newResource(rt *Runtime, dev int, what, call string, h uintptr) *resource {
	r := &resource{rt: rt, dev: dev, what: what, call: call, h: h, made: here()}
	r.cleanup = runtime.AddCleanup(r, leaked, leak{rt, dev, what, r.made})
	return r
}

// handle is the runtime's handle or address; ok is false once it has been given back.
func (r *resource) handle() (h uintptr, ok bool) {
	if r == nil || r.closed.Load() != nil {
		return 0, false
	}
	return r.h, true
}

// use is the handle, for a call.
func (r *resource) use() (uintptr, error) {
	if r == nil {
		return 0, errNil
	}
	if at := r.closed.Load(); at != nil {
		return 0, r.errClosed(at)
	}
	return r.h, nil
}

// device is the number of the device, -1 of nothing.
func (r *resource) device() int {
	if r == nil {
		return -1
	}
	return r.dev
}

// same is an error if o is of another runtime: to that one, r's handle is an address of nothing. Whether
// two devices will do, the runtime says.
func (r *resource) same(o *resource) error {
	if r.rt != o.rt {
		return r.rt.errorf("%s is of %v, but %s is of %v", r.what, Device{r.rt, r.dev}, o.what, Device{o.rt, o.dev})
	}
	return nil
}

var errNil = fmt.Errorf("gpu: used without having been made: %w", ErrClosed)

func (r *resource) errClosed(at *origin) error {
	return r.rt.errorf("device %d: %s, made at %s, was given back at %s: %w", r.dev, r.what, r.made, at, ErrClosed)
}

// close gives the resource back with free, once. If that fails it counts as given back nevertheless: nobody knows
// what is left of it.
func (r *resource) close(free func(h uintptr) code) error {
	if r == nil {
		return errNil
	}
	if !r.closed.CompareAndSwap(nil, here()) {
		return r.errClosed(r.closed.Load())
	}
	r.cleanup.Stop()
	return r.rt.check(free(r.h), r.call, r.dev)
}
