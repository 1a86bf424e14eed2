package rocm_test

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/rocm"
)

// Every element type of ccl is one of memory, and memory and streams are ccl's.
func memory[T ccl.Number](d rocm.Device) (ccl.Memory[T], error) { return rocm.Alloc[T](d, 1) }

var (
	_            = memory[ccl.BFloat16]
	_ ccl.Stream = (*rocm.Stream)(nil)
)

// platform is this package, for the tests that it has in common with the other one.
var platform = gputest.Platform[gpu.ROCm]{
	Name: "rocm", Runtime: "HIP", Tag: "rccl",
	Available: rocm.Available, Count: rocm.Count, Devices: rocm.Devices, At: rocm.At, Local: rocm.Local, Versions: rocm.Versions, Library: rocm.Library,
	Alloc: rocm.Alloc[float32], AllocManaged: rocm.AllocManaged[float32], AllocHost: rocm.AllocHost[float32],
}

var _ = platform // of which a build with the tag and without cgo tests nothing
