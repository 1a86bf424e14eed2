// Package cuda gives Go programs NVIDIA's devices: memory, streams, events, graphs and kernels. It opens the CUDA runtime at
// run time, so building needs no SDK, and a program also starts where there is no CUDA.
//
// The build tag nccl compiles it in, with cgo, on Linux. In other builds every call returns an [*Unavailable], and
// [Available] says so. The package opens the file that GOCCL_CUDART_LIB names, or else libcudart.so.13, .12 or .11.0, or
// else the driver's libcuda.so.1.
//
//	d, err := cuda.Local(place.Local, place.Locals) // or cuda.At(0)
//	s, err := d.NewStream()
//	x, err := cuda.Alloc[float32](d, 1<<20)
//	err = x.Put(data)
//	c.On(s).AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum)
//	err = s.Synchronize()
//	err = x.Get(data)
//
// A *[Stream] is a ccl.Stream and a *[Mem] is a ccl.Memory. The package also works without ccl.
//
// Devices have the runtime's numbers, from 0, among those that CUDA_VISIBLE_DEVICES leaves. Memory and
// streams know their device, so there is no current device, and a call may come from any goroutine. A call changes the
// current device of its thread. Code that calls CUDA itself, on a locked thread, must set it again.
//
// Release what you make, by Free or Close. Later use, and a second release, return an error that says where the object
// was made and where it was released. [OnLeak] reports what was never released.
package cuda

import (
	"github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// A Device is one of the visible devices. Its methods:
//
//	CanAccess(peer Device) (bool, error)
//	    CanAccess reports whether d can read and write the memory of peer directly, without the
//	    host.
//	DisableAccess(peer Device) error
//	    DisableAccess undoes EnableAccess.
//	EnableAccess(peer Device) error
//	    EnableAccess lets d read and write the memory of peer.
//	Index() int
//	    Index returns the runtime's number for d, counted from 0.
//	Memory() (free, total uint64, err error)
//	    Memory returns the free and the total memory of the device, in bytes.
//	NUMA() (int, error)
//	    NUMA returns the NUMA node that the device is attached to, or -1 if the system does not
//	    say.
//	Name() (string, error)
//	    Name returns the vendor's name for d, such as "NVIDIA H200".
//	NewEvent() (*Event, error)
//	    NewEvent makes an event that can measure times.
//	NewMark() (*Event, error)
//	    NewMark makes an event that cannot measure times.
//	NewStream() (*Stream, error)
//	    NewStream makes a stream.
//	Owns(p uintptr) error
//	    Owns returns an error if the driver says that p is not an address in the memory of d, and
//	    nil if it cannot tell.
//	PCI() (string, error)
//	    PCI returns the device's address on the PCI bus, as Linux writes it: "0000:1b:00.0".
//	Platform() string
//	    Platform returns "cuda" or "rocm".
//	StreamOf(handle uintptr) (*Stream, error)
//	    StreamOf returns a Stream for one that other code made on d, by its handle (cudaStream_t
//	    or hipStream_t; 0 is the default stream).
//	Synchronize() error
//	    Synchronize waits for all work that was issued to the device, on any stream.
type Device = gpu.Device

// A Stream is a first-in, first-out queue of work on a device. Its methods:
//
//	BeginCapture() error
//	    BeginCapture makes s collect the work that is issued to it, instead of running it, until
//	    EndCapture.
//	Capturing() (bool, error)
//	    Capturing reports whether s is between BeginCapture and EndCapture.
//	Close() error
//	    Close releases the stream.
//	Device() int
//	    Device returns the number of the device.
//	EndCapture() (*Graph, error)
//	    EndCapture returns the work that s has collected.
//	Handle() (h uintptr, ok bool)
//	    Handle returns the cudaStream_t or hipStream_t; ok is false once s is closed.
//	Observe(o Observer)
//	    Observe tells o of what becomes of the work of s, for as long as o is live.
//	Query() (done bool, err error)
//	    Query reports whether all work that was issued to s is done.
//	Synchronize() error
//	    Synchronize waits for all work that was issued to s.
//	Wait(ctx context.Context) error
//	    Wait waits as Synchronize does, but also returns when ctx ends; the work then goes on.
//	WaitEvent(e *Event) error
//	    WaitEvent makes work that is issued to s from now on wait for the work that e has
//	    recorded.
type Stream = gpu.Stream

// An Event is a mark in a stream that work can wait for, and that measures times. Its methods:
//
//	Close() error
//	    Close releases the event.
//	Query() (done bool, err error)
//	    Query reports whether the stream has passed the mark.
//	Record(s *Stream) error
//	    Record moves the mark to the present end of s.
//	Since(start *Event) (time.Duration, error)
//	    Since returns the time on the device from start to e.
//	Synchronize() error
//	    Synchronize waits until the stream has passed the mark.
//	Wait(ctx context.Context) error
//	    Wait waits as Synchronize does, but also returns when ctx ends.
type Event = gpu.Event

// A Graph is work captured from a stream, which can be launched as one, again and again. Its methods:
//
//	Close() error
//	    Close releases the graph.
//	Launch(s *Stream) error
//	    Launch issues all work of g to s.
type Graph = gpu.Graph

// A Mem holds elements in a device's memory. Its methods:
//
//	Arg() Arg
//	    Arg returns the address of m as an argument of a kernel.
//	CopyOn(s *Stream, src *Mem[T]) error
//	    CopyOn issues to s a copy of src, which may be on another device, to the start of m.
//	Device() int
//	    Device returns the number of the device.
//	Elem() (zero T)
//	    Elem returns zero.
//	Free() error
//	    Free releases the memory.
//	Get(dst []T) error
//	    Get copies the start of m to dst.
//	GetOn(s *Stream, dst *Host[T]) error
//	    GetOn issues to s a copy of the start of m to dst.
//	Len() int
//	    Len returns the number of elements.
//	Part(i, j int) (*Mem[T], error)
//	    Part returns m[i:j].
//	Platform() string
//	    Platform returns "cuda" or "rocm".
//	Ptr() (addr uintptr, ok bool)
//	    Ptr returns the address; ok is false once the memory is freed.
//	Put(src []T) error
//	    Put copies src to the start of m and returns when the copy is done.
//	PutOn(s *Stream, src *Host[T]) error
//	    PutOn issues to s a copy of src to the start of m.
//	Set(v byte) error
//	    Set writes v to every byte of m and returns when that is done.
//	SetOn(s *Stream, v byte) error
//	    SetOn issues to s a write of v to every byte of m.
//	Slice() ([]T, error)
//	    Slice returns managed memory as a slice for the host.
type Mem[T Element] = gpu.Mem[T]

// A Host holds elements in pinned host memory, which devices read and write directly. Its methods:
//
//	Free() error
//	    Free releases the memory.
//	Len() int
//	    Len returns the number of elements.
//	Part(i, j int) (*Host[T], error)
//	    Part returns h[i:j].
//	Slice() []T
//	    Slice returns the memory as a slice, or nil once it is freed.
type Host[T Element] = gpu.Host[T]

// A Module is code for a device: its kernels. Its methods:
//
//	Close() error
//	    Close releases the module and its kernels.
//	Kernel(name string) (*Kernel, error)
//	    Kernel returns the kernel of that name: in C++ one that is extern "C".
type Module = gpu.Module

// A Kernel is a function of a Module that runs on the device. Its methods:
//
//	Launch(s *Stream, how Shape, args ...Arg) error
//	    Launch issues k to s, with one argument for each parameter.
type Kernel = gpu.Kernel

// A Shape says how many threads run a kernel.
type Shape = gpu.Shape

// A Dim is a number of blocks or of threads, in up to three dimensions. A Y or Z of 0 is 1.
type Dim = gpu.Dim

// An Arg is an argument of a kernel: [Value], [Pointer] and Mem.Arg make one.
type Arg = gpu.Arg

// Element is a type of elements: all that ccl.Number allows.
type Element = gpu.Element

// Error is a failure inside CUDA: its own code and texts.
type Error = gpu.Error

// Unavailable says why there is no CUDA in this process.
type Unavailable = gpu.Unavailable

// ErrClosed is in the errors of calls on freed memory and on closed streams, events and graphs.
var ErrClosed = gpu.ErrClosed

// Available returns nil if CUDA can be used in this process, and otherwise an *Unavailable with the
// reason. It does not look for a device.
func Available() error { return gpu.CUDA.Open() }

// Versions are the newest CUDA that the driver can run, and the runtime's: 13000 is 13.0.
func Versions() (driver, runtime int, err error) { return gpu.CUDA.Versions() }

// Library returns the file that was opened, or "" if none was.
func Library() string { return gpu.CUDA.Path() }

// Count returns the number of visible devices. No device is not an error.
func Count() (int, error) { return gpu.CUDA.Count() }

// Devices returns all visible devices.
func Devices() ([]Device, error) { return gpu.CUDA.Devices() }

// At returns the visible device with number n. Its error says which devices there are.
func At(n int) (Device, error) { return gpu.CUDA.Device(n) }

// Local returns the device of the rank that is number local of locals on its host. It is the device
// that a Comm takes by default: the one with number local, or the only one that the launcher has
// left visible. If there are more ranks than devices, it returns an error.
func Local(local, locals int) (Device, error) { return gpu.CUDA.Local(local, locals) }

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

// Load compiles an image for d: PTX, as text, or a cubin. If it cannot be compiled, the error has what
// the driver's compiler says. Close releases the Module.
//
//	m, err := cuda.Load(d, ptx)
//	saxpy, err := m.Kernel("saxpy")
//	how := cuda.Shape{Grid: cuda.Dim{X: (n + 255) / 256}, Block: cuda.Dim{X: 256}}
//	err = saxpy.Launch(s, how, y.Arg(), x.Arg(), cuda.Value(float32(2)), cuda.Value(uint32(n)))
//
// Where the driver tells what parameters a kernel has, from CUDA 12.4 on, Launch refuses other
// arguments; older drivers read what they are given.
func Load(d Device, image []byte) (*Module, error) { return gpu.Load(d, image) }

// Value returns v as an argument of a kernel. An int and a uint have 8 bytes.
func Value[T Element](v T) Arg { return gpu.Value(v) }

// Pointer returns the address of memory of the device as an argument of a kernel, such as that of a
// [github.com/goccl/goccl/ccl.Buf].
func Pointer(addr uintptr) Arg { return gpu.Pointer(addr) }

// OnLeak sets a function that is called for each object that the garbage collector finds and that
// was never released. Its text says what the object is and which line made it. nil ends that.
// GOCCL_LEAKS=1 in the environment logs the same.
func OnLeak(f func(text string)) { lent.OnLeak(f) }
