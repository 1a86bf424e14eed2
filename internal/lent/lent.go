// Package lent keeps account of what a vendor's runtime has lent to the program: memory, streams, events, graphs. Each is
// given back once. What is used after that, or is forgotten, is named with where it was made and given back.
package lent

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
)

// ErrClosed is in the errors of calls on what was given back.
var ErrClosed = errors.New("closed")

// Resource is something that has to be given back.
type Resource struct {
	What string // "stream", "4096 bytes of device memory"
	Made *Origin

	pkg     string // that the program knows: "cuda"
	dev     int
	h       uintptr
	closed  atomic.Pointer[Origin] // where it was given back; nil while it is there
	cleanup runtime.Cleanup
}

// New takes what package pkg's runtime has just made on device dev: its handle, or its address.
func New(pkg string, dev int, what string, h uintptr) *Resource {
	return NewAt(Here(), pkg, dev, what, h)
}

// NewAt is New of what was made at a place that is known: one call may make many.
func NewAt(made *Origin, pkg string, dev int, what string, h uintptr) *Resource {
	r := &Resource{What: what, Made: made, pkg: pkg, dev: dev, h: h}
	r.cleanup = runtime.AddCleanup(r, leaked, leak{pkg, dev, what, r.Made})
	return r
}

// Borrowed is New of what other code has made and gives back: to forget it is no leak.
func Borrowed(pkg string, dev int, what string, h uintptr) *Resource {
	return &Resource{What: what, Made: Here(), pkg: pkg, dev: dev, h: h}
}

// Handle is the runtime's handle or address; ok is false once it has been given back.
func (r *Resource) Handle() (h uintptr, ok bool) {
	if r.closed.Load() != nil {
		return 0, false
	}
	return r.h, true
}

// Use is the handle, for a call.
func (r *Resource) Use() (uintptr, error) {
	if at := r.closed.Load(); at != nil {
		return 0, r.errClosed(at)
	}
	return r.h, nil
}

// Close gives the resource back with free, once. If that fails it counts as given back nevertheless: nobody knows what is
// left of it.
func (r *Resource) Close(free func(h uintptr) error) error {
	if !r.closed.CompareAndSwap(nil, Here()) {
		return r.errClosed(r.closed.Load())
	}
	r.cleanup.Stop()
	return free(r.h)
}

func (r *Resource) errClosed(at *Origin) error {
	return fmt.Errorf("%s: device %d: %s, made at %s, was released at %s: %w", r.pkg, r.dev, r.What, r.Made, at, ErrClosed)
}

// Address is the handle, whether it has been given back or not.
func (r *Resource) Address() uintptr { return r.h }
