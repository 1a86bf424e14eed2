// Package gpu gives Go programs the devices of NVIDIA and AMD: memory, streams, events and graphs,
// and kernels for NVIDIA's. Programs for one of the two import package cuda or rocm, whose types
// and functions are those of this package with the platform filled in: cuda.Mem[float32] is
// Mem[float32, CUDA]. This page documents the methods of all of them.
//
// The platform is a type, [CUDA] or [ROCm]. So the compiler keeps memory and streams of one apart
// from those of the other, and code for both is generic:
//
//	func sum[P gpu.Platform](d gpu.Device[P], x *gpu.Mem[float32, P]) error
//
// Devices have the runtime's numbers, from 0, among those that the environment leaves visible.
// Memory and streams know their device, so there is no current device, and a call may come from any
// goroutine. A call changes the current device of its thread. Code that calls CUDA or HIP itself,
// on a locked thread, must set it again.
//
// Release what you make, by Free or Close. Later use, and a second release, return an error that says where the object
// was made and where it was released. [OnLeak] reports what was never released.
package gpu

import (
	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Platform is [CUDA] or [ROCm].
type Platform interface {
	~struct{}
	Runtime() *rt.Runtime
}

// CUDA is the platform of NVIDIA's devices: package cuda. The build tag nccl compiles it in.
type CUDA struct{}

// Runtime is for this module's own use.
func (CUDA) Runtime() *rt.Runtime { return rt.CUDA }

// ROCm is the platform of AMD's devices: package rocm. The build tag rccl compiles it in.
type ROCm struct{}

// Runtime is for this module's own use.
func (ROCm) Runtime() *rt.Runtime { return rt.HIP }

// runtimeOf is P's.
func runtimeOf[P Platform]() *rt.Runtime {
	var p P
	return p.Runtime()
}

// Element is a type of elements: all that ccl.Number allows.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// Error is a failure inside CUDA or HIP: its own code and texts.
type Error = rt.Error

// Unavailable says why there is no CUDA or HIP in this process.
type Unavailable = rt.Unavailable

// ErrClosed is in the errors of calls on freed memory and on closed streams, events, graphs and modules.
var ErrClosed = lent.ErrClosed

// OnLeak sets a function that is called for each object that the garbage collector finds and that
// was never released. Its text says what the object is and which line made it. nil ends that.
// GOCCL_LEAKS=1 in the environment logs the same.
func OnLeak(f func(text string)) { lent.OnLeak(f) }
