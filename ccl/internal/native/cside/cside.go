//go:build cgo && linux

// Package cside is what the tests of package native need in C, which a test file cannot have: the loop that a C program
// would make, and what the fake library counts.
package cside

/*
#cgo LDFLAGS: -ldl
#include "../../../../include/gccl.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef g_res all_reduce(const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double loop(void *library, const char *getDevice, uintptr_t comm, uintptr_t stream, uintptr_t at, size_t count, int n) {
	all_reduce *f = (all_reduce *)dlsym(library, "ncclAllReduce");
	int (*get)(int *) = *getDevice ? (int (*)(int *))dlsym(library, getDevice) : NULL, now_on;
	if (*getDevice && !get)
		return -1;
	double start = now();
	for (int i = 0; i < n; i++)
		if ((get && (get(&now_on) || now_on)) || f((void *)at, (void *)at, count, GCCL_FLOAT32, GCCL_SUM, (g_comm)comm, (g_stream)stream))
			return -1;
	return now() - start;
}

// once makes the call of loop once.
static int once(uintptr_t f, uintptr_t get, uintptr_t comm, uintptr_t stream, uintptr_t at, size_t count) {
	int now_on;
	if (get && (((int (*)(int *))get)(&now_on) || now_on))
		return -1;
	return ((all_reduce *)f)((void *)at, (void *)at, count, GCCL_FLOAT32, GCCL_SUM, (g_comm)comm, (g_stream)stream);
}

static uintptr_t find(void *library, const char *name) { return (uintptr_t)dlsym(library, name); }

static int live(void *library, int kind) {
	int (*f)(int) = (int (*)(int))dlsym(library, "goccl_fake_live");
	return f ? f(kind) : -1;
}

static int ask(void *library, const char *name) {
	int (*f)(void) = (int (*)(void))dlsym(library, name);
	return f ? f() : -1;
}

static const char *config(void *library, uintptr_t comm) {
	const char *(*f)(g_comm) = (const char *(*)(g_comm))dlsym(library, "goccl_fake_config");
	return f ? f((g_comm)comm) : "";
}

static void *open_it(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Library is a loaded library, the one that package native has loaded from the same file.
type Library struct{ handle unsafe.Pointer }

// Open opens the file again.
func Open(path string) (Library, error) {
	h := C.open_it(C.CString(path))
	if h == nil {
		return Library{}, fmt.Errorf("%s cannot be loaded", path)
	}
	return Library{h}, nil
}

// Asked is, by backend, what a loop in C asks before each call, as the engine does: see on, compose.c.
var Asked = map[string]string{"rccl": "hipGetDevice"}

// Loop is how long n all-reduces take in C to issue, on device 0, and asks the function getDevice
// before each call whether the thread is on it, unless that is "". It is negative if a call fails.
func (l Library) Loop(getDevice string, comm, stream, at uintptr, count, n int) time.Duration {
	get := C.CString(getDevice)
	defer C.free(unsafe.Pointer(get))
	return time.Duration(C.loop(l.handle, get, C.uintptr_t(comm), C.uintptr_t(stream), C.uintptr_t(at), C.size_t(count),
		C.int(n)))
}

// Crossings is how long the calls of Loop take where Go makes each of them, with nothing beside the
// crossing to C and the call.
func (l Library) Crossings(getDevice string, comm, stream, at uintptr, count, n int) time.Duration {
	find := func(name string) C.uintptr_t { // a pointer would be checked at each crossing
		s := C.CString(name)
		defer C.free(unsafe.Pointer(s))
		return C.find(l.handle, s)
	}
	f, get := find("ncclAllReduce"), C.uintptr_t(0)
	if getDevice != "" {
		if get = find(getDevice); get == 0 {
			return -1
		}
	}
	start := time.Now()
	for range n {
		if C.once(f, get, C.uintptr_t(comm), C.uintptr_t(stream), C.uintptr_t(at), C.size_t(count)) != 0 {
			return -1
		}
	}
	return time.Since(start)
}

// Config is what a communicator of the fake library was made with.
func (l Library) Config(comm uintptr) string {
	return C.GoString(C.config(l.handle, C.uintptr_t(comm)))
}

// Violations is how often a communicator was used that a real library would have freed.
func (l Library) Violations() int { return l.ask("goccl_fake_violations") }

// Threads is how many threads calls have made.
func (l Library) Threads() int { return l.ask("goccl_fake_threads") }

// Contexts is the devices on which there is a context, as bits.
func (l Library) Contexts() int { return l.ask("goccl_fake_contexts") }

// Registered is how many registrations of memory there are.
func (l Library) Registered() int { return l.ask("goccl_fake_registered") }

// RegisteredBytes is how many bytes have been registered, in all.
func (l Library) RegisteredBytes() int { return l.ask("goccl_fake_registered_bytes") }

// Windows is how many windows there are.
func (l Library) Windows() int { return l.ask("goccl_fake_windows") }

// Asking is how many threads are in ncclCommGetAsyncError.
func (l Library) Asking() int { return l.ask("goccl_fake_asking") }

// Shrunk is how many calls of ncclCommShrink were taken.
func (l Library) Shrunk() int { return l.ask("goccl_fake_shrunk") }

// Aborting is how many threads are in ncclCommAbort, with all operations ended.
func (l Library) Aborting() int { return l.ask("goccl_fake_aborting") }

func (l Library) ask(name string) int {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return int(C.ask(l.handle, s))
}

// Live is how many blocks of memory, streams, events, graphs, communicators and operations the fake library has.
func (l Library) Live() (n [6]int) {
	for kind := range n {
		n[kind] = int(C.live(l.handle, C.int(kind)))
	}
	return n
}
