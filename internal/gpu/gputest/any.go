package gputest

import (
	"unsafe"

	"github.com/goccl/goccl/gpu"
	rt "github.com/goccl/goccl/internal/gpu"
)

// Any is the platform of tests that run on whichever runtime they are given: CUDA or HIP.
type Any struct{}

// Runtime is none: only a Runtime of this package makes devices of Any.
func (Any) Runtime() *rt.Runtime { return nil }

// Types of package gpu, for Any.
type (
	Element             = gpu.Element
	Error               = gpu.Error
	Device              = gpu.Device[Any]
	Stream              = gpu.Stream[Any]
	Event               = gpu.Event[Any]
	Graph               = gpu.Graph[Any]
	Mem[T gpu.Element]  = gpu.Mem[T, Any]
	Host[T gpu.Element] = gpu.Host[T, Any]
)

// Runtime is CUDA or HIP, with devices of Any.
type Runtime struct{ *rt.Runtime }

// The runtimes of the process.
var (
	CUDA = &Runtime{rt.CUDA}
	HIP  = &Runtime{rt.HIP}
)

// Of is r with devices of Any.
func Of(r *rt.Runtime) *Runtime {
	if r == rt.HIP {
		return HIP
	}
	return CUDA
}

// Device is visible device n.
func (r *Runtime) Device(n int) (Device, error) {
	if r == HIP {
		d, err := gpu.At[gpu.ROCm](n)
		return anyOf(d), err
	}
	d, err := gpu.At[gpu.CUDA](n)
	return anyOf(d), err
}

// Local is the device of a rank by default.
func (r *Runtime) Local(local, locals int) (Device, error) {
	n, err := r.Choose(-1, local, locals)
	if err != nil {
		return Device{}, err
	}
	return r.Device(n)
}

// Devices are all visible devices.
func (r *Runtime) Devices() (all []Device, err error) {
	n, err := r.Count()
	for i := 0; i < n && err == nil; i++ {
		var d Device
		d, err = r.Device(i)
		all = append(all, d)
	}
	return all, err
}

// anyOf is d without its platform, which the compiler would not allow.
func anyOf[P gpu.Platform](d gpu.Device[P]) Device { return *(*Device)(unsafe.Pointer(&d)) }

// Alloc is gpu.Alloc.
func Alloc[T Element](d Device, n int) (*Mem[T], error) { return gpu.Alloc[T](d, n) }

// MemOf is gpu.MemOf.
func MemOf[T Element](d Device, addr uintptr, n int) (*Mem[T], error) {
	return gpu.MemOf[T](d, addr, n)
}
