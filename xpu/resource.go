package xpu

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// ErrClosed is in the errors of calls on freed memory and on closed queues and events.
var ErrClosed = errors.New("closed")

var errNil = fmt.Errorf("xpu: used without having been made: %w", ErrClosed)

// resource is something of SYCL's that has to be given back: memory, a queue, an event.
type resource struct {
	dev    int
	what   string // "queue", "4096 bytes of device memory"
	h      uintptr
	made   string                 // where: "train.go:88"
	closed atomic.Pointer[string] // where it was given back; nil while it is there
}

func newResource(dev int, what string, h uintptr) *resource {
	return &resource{dev: dev, what: what, h: h, made: here()}
}

// here is the line outside of this package that called.
func here() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/goccl/goccl/xpu.") || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}

// handle is SYCL's; ok is false once it has been given back.
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
		return 0, r.errClosed(*at)
	}
	return r.h, nil
}

func (r *resource) errClosed(at string) error {
	return fmt.Errorf("xpu: device %d: %s, made at %s, was given back at %s: %w", r.dev, r.what, r.made, at, ErrClosed)
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
	at := here()
	if !r.closed.CompareAndSwap(nil, &at) {
		return r.errClosed(*r.closed.Load())
	}
	return r.check(free(r.h))
}

// check is err with the device.
func (r *resource) check(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("xpu: device %d: %w", r.dev, err)
}
