// Package sycl is SYCL as seen through goccl's shim (xpu/shim): what package xpu and the oneCCL engine are made of.
//
// The shim is a small C++ library, built where SYCL is (make xpu-shim) and opened at run time on first use. The tag
// oneccl compiles this package in; without it, or without cgo, every call returns an error that says so.
//
// Devices are numbers from 0. Queues, events and memory are addresses: who owns them is the caller's affair.
package sycl

import (
	"fmt"
	"sync"

	_ "github.com/goccl/goccl/include" // gxpu.h, so that go mod vendor takes it along
)

// Device says what a device is.
type Device struct {
	Index   int
	Name    string
	Backend string // "level_zero", "opencl"
	PCI     string // "0000:3a:00.0"; "" if it is not known
	Memory  uint64 // bytes
	Free    uint64 // 0 if it is not known
	GPU     bool
	Units   int // compute units
}

// Kind is a kind of memory.
type Kind int

// The kinds of memory. Unknown is all that SYCL has not made: the Go heap, for one.
const (
	OnDevice Kind = iota // a device's own
	OnHost               // the host's, pinned
	Shared               // moves between both
	Unknown
)

// String is what a sentence calls the kind.
func (k Kind) String() string {
	return [...]string{"device", "pinned host", "shared", "no SYCL"}[min(max(k, 0), Unknown)]
}

// Queue is a sycl::queue *, in order. Event is the shim's.
type (
	Queue uintptr
	Event uintptr
)

// Error is a failure inside SYCL: what its exception says.
type Error struct {
	Call string // "malloc"
	Text string
}

func (e *Error) Error() string { return "SYCL: " + e.Call + ": " + e.Text }

// Unavailable is why there is no SYCL here.
type Unavailable struct{ Err error }

func (e *Unavailable) Error() string { return e.Err.Error() }
func (e *Unavailable) Unwrap() error { return e.Err }

var state struct {
	once    sync.Once
	err     error
	devices []Device
}

// Open loads the shim and looks for devices, once in a process; later calls return what the first has. An error
// is an [*Unavailable].
func Open() error {
	state.once.Do(func() {
		if err := open(); err != nil {
			state.err = &Unavailable{err}
			return
		}
		n, err := count()
		for i := 0; i < n && err == nil; i++ {
			var d Device
			d, err = describe(i)
			state.devices = append(state.devices, d)
		}
		if err != nil {
			state.err = &Unavailable{fmt.Errorf("%w (SYCL's devices cannot be listed)", err)}
		}
	})
	return state.err
}

// Devices lists the GPUs; or what ONEAPI_DEVICE_SELECTOR lets through, where it is set. There may be none.
func Devices() ([]Device, error) {
	if err := Open(); err != nil {
		return nil, err
	}
	return state.devices, nil
}
