// Package lent keeps account of what a vendor's runtime has lent to the program: memory, streams,
// events, graphs. Each is given back once. Later use, and what is forgotten, are named with where
// it was made and given back.
package lent

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
)

// ErrClosed is in the errors of calls on what was given back.
var ErrClosed = errors.New("closed")

// errNone is of nil pointers and zero values.
var errNone = fmt.Errorf("the memory, stream, event or graph is nil or a zero value: a function of its package must make it: %w", ErrClosed)

// Resource is something that has to be given back: a handle, or an address. A nil Resource was never lent.
type Resource struct {
	Dev  int     // the number of the device
	H    uintptr // the handle or address, whether it has been given back or not
	What string  // "stream", "4096 bytes of device memory"
	Made *Origin
	Gone atomic.Pointer[Origin] // where it was given back, which Close alone sets; nil while it is there

	pkg     string                // that the program knows: "cuda"
	free    func(h uintptr) error // nil: somebody else gives it back
	cleanup runtime.Cleanup
}

// New takes what package pkg's runtime has just made on device dev: its handle or address, and what gives it back.
func New(pkg string, dev int, what string, h uintptr, free func(h uintptr) error) *Resource {
	return NewAt(Here(), pkg, dev, what, h, free)
}

// NewAt is New of what was made at a known place: one call may make many.
func NewAt(made *Origin, pkg string, dev int, what string, h uintptr, free func(h uintptr) error) *Resource {
	r := &Resource{Dev: dev, What: what, Made: made, pkg: pkg, H: h, free: free}
	r.cleanup = runtime.AddCleanup(r, leaked, leak{pkg, dev, what, made})
	return r
}

// Borrowed is New of what other code has made and gives back: to forget it is no leak.
func Borrowed(pkg string, dev int, what string, h uintptr) *Resource {
	return &Resource{Dev: dev, What: what, Made: Here(), pkg: pkg, H: h}
}

// Handle returns the handle or address; ok is false once it has been given back.
func (r *Resource) Handle() (h uintptr, ok bool) {
	if r == nil || r.Gone.Load() != nil {
		return 0, false
	}
	return r.H, true
}

// Use returns the handle, for a call.
func (r *Resource) Use() (uintptr, error) {
	if r == nil {
		return 0, errNone
	}
	if at := r.Gone.Load(); at != nil {
		return 0, r.errClosed(at)
	}
	return r.H, nil
}

// UseBoth is Use of two resources that one call takes.
func UseBoth(r, other *Resource) (h, otherH uintptr, err error) {
	if h, err = r.Use(); err == nil {
		otherH, err = other.Use()
	}
	return h, otherH, err
}

// Device is the number of r's device, -1 if r is none.
func (r *Resource) Device() int {
	if r == nil {
		return -1
	}
	return r.Dev
}

// Close gives the resource back, once. If that fails it counts as given back nevertheless: nobody
// knows what is left of it.
func (r *Resource) Close() error {
	if r == nil {
		return errNone
	}
	if !r.Gone.CompareAndSwap(nil, Here()) {
		return r.errClosed(r.Gone.Load())
	}
	r.cleanup.Stop()
	if r.free == nil {
		return nil
	}
	return r.free(r.H)
}

func (r *Resource) errClosed(at *Origin) error {
	return fmt.Errorf("%s: device %d: %s, made at %s, was released at %s: %w", r.pkg, r.Dev, r.What, r.Made, at, ErrClosed)
}
