package gpu

import (
	"fmt"

	"github.com/goccl/goccl/internal/lent"
)

// resource is something of the runtime's that has to be given back: memory, a stream, an event, a graph.
type resource struct {
	rt   *Runtime
	dev  int
	call string // that gives it back: "StreamDestroy"
	lent *lent.Resource
}

// newResource wraps what the runtime has just made.
func newResource(rt *Runtime, dev int, what, call string, h uintptr) *resource {
	return &resource{rt, dev, call, lent.New(rt.pkg, dev, what, h)}
}

// handle is the runtime's handle or address; ok is false once it has been given back.
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

// same is an error if o is of another runtime: to that one, r's handle is an address of nothing. Whether
// two devices will do, the runtime says.
func (r *resource) same(o *resource) error {
	if r.rt != o.rt {
		return r.rt.errorf("%s is of %v, but %s is of %v", r.lent.What, Device{r.rt, r.dev}, o.lent.What, Device{o.rt, o.dev})
	}
	return nil
}

var errNil = fmt.Errorf("gpu: used without having been made: %w", ErrClosed)

// close gives the resource back with free, once.
func (r *resource) close(free func(h uintptr) code) error {
	if r == nil {
		return errNil
	}
	return r.lent.Close(func(h uintptr) error { return r.rt.check(free(h), r.call, r.dev) })
}
