// Package cuda gives Go programs NVIDIA's devices: memory, streams, events, graphs and kernels. It
// opens the CUDA runtime at run time, so building needs no SDK, and a program also starts where
// there is no CUDA.
//
// The build tag nccl compiles it in, with cgo, on Linux. In other builds every call returns an
// [*Unavailable], and [Available] says so. The package opens the file that GOCCL_CUDART_LIB names,
// or else libcudart.so.13, .12 or .11.0, or else the driver's libcuda.so.1.
//
//	d, err := cuda.At(c.Place().Device) // or cuda.At(0)
//	s, err := d.NewStream()
//	x, err := cuda.Alloc[float32](d, 1<<20)
//	err = x.Put(data)
//	c.On(s).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
//	err = s.Synchronize()
//	err = x.Get(data)
//
// A *[Stream] is a ccl.Stream and a *[Mem] is a ccl.Memory. The package also works without ccl. Package [gpu] has the
// methods of all types, and lets code be for both platforms.
//
// Devices have the runtime's numbers, from 0, among those that CUDA_VISIBLE_DEVICES leaves. Memory and
// streams know their device, so there is no current device, and a call may come from any goroutine. A call changes the
// current device of its thread. Code that calls CUDA itself, on a locked thread, must set it again.
//
// Release what you make, by Free or Close. Later use, and a second release, return an error that says where the object
// was made and where it was released. [OnLeak] reports what was never released.
package cuda

import (
	"github.com/goccl/goccl/gpu"
	rt "github.com/goccl/goccl/internal/gpu"
)

// The types are those of package [gpu] for this platform. Its page has their methods.
type (
	// A Device is one of the visible devices.
	Device = gpu.Device[gpu.CUDA]
	// A Stream is a first-in, first-out queue of work on a device.
	Stream = gpu.Stream[gpu.CUDA]
	// An Event is a mark in a stream that work can wait for, and that measures times.
	Event = gpu.Event[gpu.CUDA]
	// A Graph is work captured from a stream, which can be launched as one, again and again.
	Graph = gpu.Graph[gpu.CUDA]
	// A Mem holds elements in a device's memory.
	Mem[T Element] = gpu.Mem[T, gpu.CUDA]
	// A Host holds elements in pinned host memory, which devices read and write directly.
	Host[T Element] = gpu.Host[T, gpu.CUDA]
	// A Module is code for a device: its kernels.
	Module = gpu.Module
	// A Kernel is a function of a Module that runs on the device.
	Kernel = gpu.Kernel
	// A Shape says how many threads run a kernel.
	Shape = gpu.Shape
	// A Dim is a number of blocks or of threads, in up to three dimensions. A Y or Z of 0 is 1.
	Dim = gpu.Dim
	// An Arg is an argument of a kernel: [Value], [Pointer] and Mem.Arg make one.
	Arg = gpu.Arg
	// Element is a type of elements: all that ccl.Number allows.
	Element = gpu.Element
	// Error is a failure inside CUDA: its own code and texts.
	Error = gpu.Error
	// Unavailable says why there is no CUDA in this process.
	Unavailable = gpu.Unavailable
)

// ErrClosed is in the errors of calls on freed memory and on closed streams, events, graphs and modules.
var ErrClosed = gpu.ErrClosed

// Available returns nil if CUDA can be used in this process, and otherwise an *Unavailable with the
// reason. It does not look for a device.
func Available() error { return rt.CUDA.Open() }

// Versions are the newest CUDA that the driver can run, and the runtime's: 13000 is 13.0.
func Versions() (driver, runtime int, err error) { return rt.CUDA.Versions() }

// Library returns the file that was opened, or "" if none was.
func Library() string { return rt.CUDA.Path() }

// Count returns the number of visible devices. No device is not an error.
func Count() (int, error) { return gpu.Count[gpu.CUDA]() }

// Devices returns all visible devices.
func Devices() ([]Device, error) { return gpu.Devices[gpu.CUDA]() }

// At returns the visible device with number n. Its error says which devices there are.
func At(n int) (Device, error) { return gpu.At[gpu.CUDA](n) }

// Local returns the device of the rank that is number local of locals on its host, which a Comm takes by
// default: see [gpu.Local].
func Local(local, locals int) (Device, error) { return gpu.Local[gpu.CUDA](local, locals) }

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

// Load compiles an image for d: PTX, as text, or a cubin. See [gpu.Load].
func Load(d Device, image []byte) (*Module, error) { return gpu.Load(d, image) }

// Value returns v as an argument of a kernel. An int and a uint have 8 bytes.
func Value[T Element](v T) Arg { return gpu.Value(v) }

// Pointer returns the address of memory of the device as an argument of a kernel.
func Pointer(addr uintptr) Arg { return gpu.Pointer(addr) }

// OnLeak sets a function that is told of each object that was never released: see [gpu.OnLeak].
func OnLeak(f func(text string)) { gpu.OnLeak(f) }
