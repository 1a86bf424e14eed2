// Package gpu is the one CUDA or HIP runtime of a process, and what packages cuda and rocm are made of:
// devices, memory, streams, events and graphs. The two runtimes are the same but for their names, so
// there is one of everything here, and cuda and rocm give it theirs. Modules of kernels are CUDA's alone, and
// the driver's.
//
// The library is opened on first use, never linked, and stays loaded. The tag nccl compiles in CUDA and
// the tag rccl HIP; without them, or without cgo, every call returns an error that says so.
//
// A call sets the device of the thread that it runs on and leaves it set. Code that depends on a
// thread's device, in another package, has to set it itself, on a locked thread.
package gpu

import _ "github.com/goccl/goccl/include" // gdev.h, so that go mod vendor takes it along
