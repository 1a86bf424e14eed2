// Package rocm gives Go programs AMD's devices: memory, streams, events and graphs. It opens the HIP runtime of ROCm at
// run time, so building needs no SDK, and a program also starts where there is no ROCm.
//
// The build tag rccl compiles it in, with cgo, on Linux. In other builds every call returns an [*Unavailable], and
// [Available] says so. The package opens the file that GOCCL_HIP_LIB names, or else libamdhip64.so.7, .6
// or .5.
//
//	d, err := rocm.At(c.Place().Device) // or rocm.At(0)
//	s, err := d.NewStream()
//	x, err := rocm.Alloc[float32](d, 1<<20)
//	err = x.Put(data)
//	c.On(s).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
//	err = s.Synchronize()
//	err = x.Get(data)
//
// A *[Stream] is a ccl.Stream and a *[Mem] is a ccl.Memory. The package also works without ccl. Package [gpu] has the
// methods of all types, and lets code be for both platforms.
//
// Devices have the runtime's numbers, from 0, among those that ROCR_VISIBLE_DEVICES and
// HIP_VISIBLE_DEVICES leave. Memory and streams know their device, so there is no current device,
// and a call may come from any goroutine. A call changes the current device of its thread. Code
// that calls HIP itself, on a locked thread, must set it again.
//
// Release what you make, by Free or Close. Later use, and a second release, return an error that says where the object
// was made and where it was released. [OnLeak] reports what was never released.
package rocm

import (
	"github.com/goccl/goccl/gpu"
	rt "github.com/goccl/goccl/internal/gpu"
)

// The types are those of package [gpu] for this platform. Its page has their methods.
type (
	// A Device is one of the visible devices.
	Device = gpu.Device[gpu.ROCm]
	// A Stream is a first-in, first-out queue of work on a device.
	Stream = gpu.Stream[gpu.ROCm]
	// An Event is a mark in a stream that work can wait for, and that measures times.
	Event = gpu.Event[gpu.ROCm]
	// A Graph is work captured from a stream, which can be launched as one, again and again.
	Graph = gpu.Graph[gpu.ROCm]
	// A Mem holds elements in a device's memory.
	Mem[T Element] = gpu.Mem[T, gpu.ROCm]
	// A Host holds elements in pinned host memory, which devices read and write directly.
	Host[T Element] = gpu.Host[T, gpu.ROCm]
	// Element is a type of elements: all that ccl.Number allows.
	Element = gpu.Element
	// Error is a failure inside HIP: its own code and texts.
	Error = gpu.Error
	// Unavailable says why there is no HIP in this process.
	Unavailable = gpu.Unavailable
)

// ErrClosed is in the errors of calls on freed memory and on closed streams, events and graphs.
var ErrClosed = gpu.ErrClosed

// Available returns nil if HIP can be used in this process, and otherwise an *Unavailable with the
// reason. It does not look for a device.
func Available() error { return rt.HIP.Open() }

// Versions are the driver's and the runtime's, which HIP does not tell apart: 60443484 is 6.4.43484.
func Versions() (driver, runtime int, err error) { return rt.HIP.Versions() }

// Library returns the file that was opened, or "" if none was.
func Library() string { return rt.HIP.Path() }

// Count returns the number of visible devices. No device is not an error.
func Count() (int, error) { return gpu.Count[gpu.ROCm]() }

// Devices returns all visible devices.
func Devices() ([]Device, error) { return gpu.Devices[gpu.ROCm]() }

// At returns the visible device with number n. Its error says which devices there are.
func At(n int) (Device, error) { return gpu.At[gpu.ROCm](n) }

// Local returns the device of the rank that is number local of locals on its host, which a Comm takes by
// default: see [gpu.Local].
func Local(local, locals int) (Device, error) { return gpu.Local[gpu.ROCm](local, locals) }

// Alloc allocates n elements of memory on d. Their contents are undefined.
func Alloc[T Element](d Device, n int) (*Mem[T], error) { return gpu.Alloc[T](d, n) }

// AllocManaged allocates n elements of memory with one address for d and the host.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) { return gpu.AllocManaged[T](d, n) }

// AllocHost allocates n elements of pinned host memory, for copies in the background.
func AllocHost[T Element](d Device, n int) (*Host[T], error) { return gpu.AllocHost[T](d, n) }

// MemOf returns a Mem for n elements of memory that other code, such as ccl.MakeDevice, has allocated.
func MemOf[T Element](d Device, addr uintptr, n int) (*Mem[T], error) {
	return gpu.MemOf[T](d, addr, n)
}

// OnLeak sets a function that is told of each object that was never released: see [gpu.OnLeak].
func OnLeak(f func(text string)) { gpu.OnLeak(f) }
