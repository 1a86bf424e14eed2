//go:build nccl && cgo && linux

package main

/*
#cgo LDFLAGS: -ldl
#include "../../../include/gccl.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef g_res all_reduce(const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream);

static void *find(const char *file) {
	void *l = file && *file ? dlopen(file, RTLD_NOW) : NULL;
	if (!l)
		l = dlopen("libnccl.so.2", RTLD_NOW);
	return l ? dlsym(l, "ncclAllReduce") : NULL;
}

static int loop(void *f, uintptr_t comm, uintptr_t stream, uintptr_t at, size_t count, int n) {
	int r = 0;
	for (int i = 0; i < n && !r; i++)
		r = ((all_reduce *)f)((void *)at, (void *)at, count, GCCL_FLOAT32, GCCL_SUM, (g_comm)comm, (g_stream)stream);
	return r;
}

static void nothing(void) {}
*/
import "C"

import (
	"errors"
	"os"
	"unsafe"
)

// bare is the same call without goccl: ncclAllReduce of the communicator, the stream and the memory
// of a run.
type bare struct {
	f                unsafe.Pointer
	comm, stream, at uintptr
}

func findBare(comm, stream, at uintptr) (*bare, error) {
	name := C.CString(os.Getenv("GOCCL_NCCL_LIB"))
	defer C.free(unsafe.Pointer(name))
	f := C.find(name)
	if f == nil {
		return nil, errors.New("no ncclAllReduce in the library that GOCCL_NCCL_LIB names, nor in libnccl.so.2")
	}
	return &bare{f, comm, stream, at}, nil
}

// loop makes n calls in C, and result is what the last said.
func (b *bare) loop(n int) (result int) {
	return int(C.loop(b.f, C.uintptr_t(b.comm), C.uintptr_t(b.stream), C.uintptr_t(b.at), elements, C.int(n)))
}

// crossing goes into C and back n times.
func crossing(n int) {
	for range n {
		C.nothing()
	}
}

// crossings makes n calls, each through cgo.
func (b *bare) crossings(n int) (result int) {
	for range n {
		result |= int(C.loop(b.f, C.uintptr_t(b.comm), C.uintptr_t(b.stream), C.uintptr_t(b.at), elements, 1))
	}
	return result
}
