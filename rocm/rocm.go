// Package rocm is AMD's devices: memory, streams, events and graphs, through the HIP runtime of ROCm, which is
// opened at run time. No SDK is needed to build, and a program starts where there is no ROCm.
//
// It is compiled in by -tags rccl, with cgo, on Linux; in other builds every call returns an [*Unavailable].
// [Available] asks. What it opens is libamdhip64.so.7, .6 or .5, or what GOCCL_HIP_LIB names.
//
//	d, err := rocm.Local(place.Local, place.Locals) // or rocm.At(0)
//	s, err := d.NewStream()
//	x, err := rocm.Alloc[float32](d, 1<<20)
//	err = x.Put(data)
//	c.On(s).AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum)
//	err = s.Synchronize()
//	err = x.Get(data)
//
// *[Stream] is a ccl.Stream and *[Mem] a ccl.Memory; the package works without ccl as well.
//
// Devices are numbered as the runtime numbers those that ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave, from
// 0 on. Memory and streams know their device, so there is no current one: a call may come from any goroutine. It
// changes the current device of the thread it runs on, which code that calls HIP by itself, on a locked thread,
// must set again.
//
// What was made has to be given back, by Free or Close. Use afterwards, and giving back twice, is an error that says
// where it was made and given back; what was forgotten [OnLeak] tells.
//
// The methods, whose documentation is that of the types these names stand for:
//
//	Device  Index Platform Name Memory PCI NUMA Synchronize CanAccess EnableAccess DisableAccess Owns
//	        NewStream StreamOf NewEvent NewMark
//	Stream  Handle Device Synchronize Query Wait Observe WaitEvent BeginCapture EndCapture Capturing Close
//	Event   Record Query Synchronize Wait Since Close
//	Graph   Launch Close
//	Mem     Ptr Device Len Elem Platform Part Put Get Set PutOn GetOn CopyOn SetOn Slice Free
//	Host    Slice Len Part Free
package rocm

import (
	"github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// A Device is one of the visible devices.
type Device = gpu.Device

// A Stream is a first-in first-out queue of work on a device.
type Stream = gpu.Stream

// An Event is a mark in a stream, and tells times.
type Event = gpu.Event

// A Graph is work captured from a stream, to be launched as one.
type Graph = gpu.Graph

// Mem is elements in a device's memory.
type Mem[T Element] = gpu.Mem[T]

// Host is elements in pinned host memory.
type Host[T Element] = gpu.Host[T]

// Element is a type of elements: all that ccl.Number allows.
type Element = gpu.Element

// Error is a failure inside HIP: its own code and texts.
type Error = gpu.Error

// Unavailable says why there is no HIP in this process.
type Unavailable = gpu.Unavailable

// ErrClosed is in the errors of calls on freed memory and on closed streams, events and graphs.
var ErrClosed = gpu.ErrClosed

// Available returns nil if HIP can be used in this process, and otherwise an *Unavailable with the
// reason. It does not look for a device.
func Available() error { return gpu.HIP.Open() }

// Versions are the driver's and the runtime's, which HIP does not tell apart: 60443484 is 6.4.43484.
func Versions() (driver, runtime int, err error) { return gpu.HIP.Versions() }

// Library returns the file that was opened, or "" if none was.
func Library() string { return gpu.HIP.Path() }

// Count returns the number of visible devices. No device is not an error.
func Count() (int, error) { return gpu.HIP.Count() }

// Devices returns all visible devices.
func Devices() ([]Device, error) { return gpu.HIP.Devices() }

// At returns the visible device with number n. Its error says which devices there are.
func At(n int) (Device, error) { return gpu.HIP.Device(n) }

// Local returns the device of the rank that is number local of locals on its host. It is the device
// that a Comm takes by default: the one with number local, or the only one that the launcher has
// left visible. If there are more ranks than devices, it returns an error.
func Local(local, locals int) (Device, error) { return gpu.HIP.Local(local, locals) }

// Alloc allocates n elements of memory on d. Their contents are undefined.
func Alloc[T Element](d Device, n int) (*Mem[T], error) { return gpu.Alloc[T](d, n) }

// MemOf returns a Mem for n elements of memory that other code, such as ccl.MakeDevice, has
// allocated on d at addr. Freeing the Mem leaves that memory alone.
func MemOf[T Element](d Device, addr uintptr, n int) (*Mem[T], error) {
	return gpu.MemOf[T](d, addr, n)
}

// AllocManaged allocates n elements of memory that has one address for d and the host. The driver
// moves it between them.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) { return gpu.AllocManaged[T](d, n) }

// AllocHost allocates n elements of pinned host memory, for copies in the background.
func AllocHost[T Element](d Device, n int) (*Host[T], error) { return gpu.AllocHost[T](d, n) }

// OnLeak sets a function that is called for each object that the garbage collector finds and that
// was not given back. Its text says what the object is and which line made it. nil ends that.
// GOCCL_LEAKS=1 in the environment logs the same.
func OnLeak(f func(text string)) { lent.OnLeak(f) }
