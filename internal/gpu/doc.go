// Package gpu is the CUDA or HIP runtime of a process: it opens the library, calls its functions, and makes
// errors of what they return. The public package gpu makes devices, memory, streams, events and graphs of it.
// The two runtimes are the same but for their names, so there is one of everything here.
//
// The library is opened on first use, never linked, and stays loaded. The tag nccl compiles in CUDA and
// the tag rccl HIP; without them, or without cgo, every call returns an error that says so.
//
// A call sets the device of the thread that it runs on and leaves it set. Code that depends on a
// thread's device, in another package, has to set it itself, on a locked thread.
package gpu

import _ "github.com/goccl/goccl/include" // gdev.h, so that go mod vendor takes it along
