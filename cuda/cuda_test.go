package cuda_test

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// Every element type of ccl is one of memory, and memory and streams are ccl's.
func memory[T ccl.Number](d cuda.Device) (ccl.Memory[T], error) { return cuda.Alloc[T](d, 1) }

var (
	_            = memory[ccl.BFloat16]
	_ ccl.Stream = (*cuda.Stream)(nil)
)

// platform is this package, for the tests that it has in common with the other one.
var platform = gputest.Platform[gpu.CUDA]{
	Name: "cuda", Runtime: "CUDA", Tag: "nccl",
	Available: cuda.Available, Count: cuda.Count, Devices: cuda.Devices, At: cuda.At, Local: cuda.Local, Versions: cuda.Versions, Library: cuda.Library,
	Alloc: cuda.Alloc[float32], AllocManaged: cuda.AllocManaged[float32], AllocHost: cuda.AllocHost[float32],
}

var _ = platform // of which a build with the tag and without cgo tests nothing
