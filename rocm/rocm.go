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

// Available is nil, or why there is no HIP in this process: an [*Unavailable]. It does not ask for a device.
func Available() error { return gpu.HIP.Open() }

// Versions are the driver's and the runtime's, which HIP does not tell apart: 60443484 is 6.4.43484.
func Versions() (driver, runtime int, err error) { return gpu.HIP.Versions() }

// Library is the file that was opened, "" if none.
func Library() string { return gpu.HIP.Path() }

// Count is the number of visible devices. That there is none is no error.
func Count() (int, error) { return gpu.HIP.Count() }

// Devices are all visible devices.
func Devices() ([]Device, error) { return gpu.HIP.Devices() }

// At is visible device n. The error says which there are.
func At(n int) (Device, error) { return gpu.HIP.Device(n) }

// Local is the device of the rank that is the local-th of locals on its host, the same that a Comm takes by default: device
// local, or the only one that the launcher has left visible. More ranks than devices is an error.
func Local(local, locals int) (Device, error) { return gpu.HIP.Local(local, locals) }

// Alloc returns n elements of memory on d, which hold anything.
func Alloc[T Element](d Device, n int) (*Mem[T], error) { return gpu.Alloc[T](d, n) }

// MemOf is n elements of memory that other code has made on d, such as ccl.MakeDevice, by its address. Freeing it leaves the memory
// itself alone.
func MemOf[T Element](d Device, addr uintptr, n int) (*Mem[T], error) {
	return gpu.MemOf[T](d, addr, n)
}

// AllocManaged returns n elements of memory with one address for d and the host, between which the driver moves it.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) { return gpu.AllocManaged[T](d, n) }

// AllocHost returns n elements of pinned host memory, for copies in the background.
func AllocHost[T Element](d Device, n int) (*Host[T], error) { return gpu.AllocHost[T](d, n) }

// OnLeak has f told, from then on, of what the garbage collector finds although it was not given back: what it was, and
// the line that made it. nil ends that. GOCCL_LEAKS=1 in the environment logs it.
func OnLeak(f func(text string)) { lent.OnLeak(f) }
