//go:build oneccl && cgo && linux

package sycl

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gxpu.h"

#cgo noescape goccl_event_done
#cgo nocallback goccl_event_done
#cgo nocallback goccl_event_record

typedef uintptr_t U; // addresses are no Go pointers
static gxpu T;

// goccl_bind fills the table. It returns the first name that is missing.
static const char *goccl_bind(U so) {
#define GXPU_BIND(ret, name, params) \
	*(void **)&T.name = dlsym((void *)so, "gxpu_" #name); \
	if (!T.name) return "gxpu_" #name;
	GXPU_FUNCS(GXPU_BIND)
	return NULL;
}
static int goccl_abi(void) { return T.abi(); }
static gxpu *goccl_table(void) { return &T; }

// What fails leaves its text on the thread that ran it, so it is taken in the same call: null, or a text to free.
#define TRY(call) return T.call ? strdup(T.error()) : NULL
static char *goccl_count(int *n) { TRY(device_count(n)); }
static char *goccl_device(int i, struct gxpu_device *d) { TRY(device_get(i, d)); }
static char *goccl_queue_new(int dev, int flags, U *q) { TRY(queue_new(dev, flags, (void **)q)); }
static char *goccl_queue_free(U q) { TRY(queue_free((void *)q)); }
static char *goccl_queue_wait(U q) { TRY(queue_wait((void *)q)); }
static char *goccl_queue_empty(U q, int *e) { TRY(queue_empty((void *)q, e)); }
static char *goccl_queue_after(U q, U e) { TRY(queue_after((void *)q, (void *)e)); }
static char *goccl_mem_new(int dev, int kind, size_t n, U *p) { TRY(mem_new(dev, kind, n, (void **)p)); }
static char *goccl_mem_free(int dev, U p) { TRY(mem_free(dev, (void *)p)); }
static char *goccl_mem_kind(int dev, U p, int *kind) { TRY(mem_kind(dev, (void *)p, kind)); }
static char *goccl_put(U q, U d, void *s, size_t n) { TRY(copy((void *)q, (void *)d, s, n)); }
static char *goccl_get(U q, void *d, U s, size_t n) { TRY(copy((void *)q, d, (void *)s, n)); }
static char *goccl_copy(U q, U d, U s, size_t n) { TRY(copy_async((void *)q, (void *)d, (void *)s, n)); }
static char *goccl_set(U q, U d, int v, size_t n) { TRY(set_async((void *)q, (void *)d, v, n)); }
static char *goccl_event_new(U *e) { TRY(event_new((void **)e)); }
static char *goccl_event_free(U e) { TRY(event_free((void *)e)); }
static char *goccl_event_record(U e, U q) { TRY(event_record((void *)e, (void *)q)); }
static char *goccl_event_done(U e, int *done) { TRY(event_done((void *)e, done)); }
static char *goccl_event_wait(U e) { TRY(event_wait((void *)e)); }
static char *goccl_event_since(U end, U start, double *s) { TRY(event_since((void *)end, (void *)start, s)); }
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/signals"
)

// open loads the shim, and with it SYCL.
func open() error {
	// A program that has no libm crashes in the loader where SYCL's own libimf is bound before it.
	if _, err := (dl.Search{What: "libm", Names: []string{"libm.so.6"}, Global: true}).Open(); err != nil {
		return err
	}
	defer signals.Guard()()
	const file = "libgocclxpu.so"
	names := []string{file}
	if program, err := os.Executable(); err == nil {
		names = append(names, filepath.Join(filepath.Dir(program), file))
	}
	lib, err := dl.Search{
		What: "the SYCL shim", Env: environ.XPULib.Name, Names: names,
		Advice: "build " + file + " where SYCL is (make xpu-shim) and put it beside the program",
	}.Open()
	if err != nil {
		return err
	}
	if missing := C.goccl_bind(C.U(lib.Handle())); missing != nil {
		return fmt.Errorf("%s is not goccl's SYCL shim: it has no %s. Set GOCCL_XPU_LIB to the file that make xpu-shim builds", lib.Path(), C.GoString(missing))
	}
	if abi := int(C.goccl_abi()); abi != C.GXPU_ABI {
		return fmt.Errorf("%s is of another version of goccl (interface %d, here %d): build it again with make xpu-shim",
			lib.Path(), abi, C.GXPU_ABI)
	}
	return nil
}

// Table is the shim's functions, a *gxpu of include/gxpu.h, for C code elsewhere in this module; Open must have
// succeeded.
func Table() unsafe.Pointer { return unsafe.Pointer(C.goccl_table()) }

// check makes an error of a text, which it frees.
func check(call string, text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return &Error{Call: call, Text: C.GoString(text)}
}

func count() (int, error) {
	defer signals.Guard()()
	var n C.int
	err := check("device::get_devices", C.goccl_count(&n))
	return int(n), err
}

func describe(i int) (Device, error) {
	var d C.struct_gxpu_device
	err := check("device::get_info", C.goccl_device(C.int(i), &d))
	return Device{
		Index: i, Name: C.GoString(&d.name[0]), Backend: C.GoString(&d.backend[0]), PCI: C.GoString(&d.pci[0]),
		Memory: uint64(d.memory), Free: uint64(d.free), GPU: d.gpu != 0, Units: int(d.units),
	}, err
}

// NewQueue makes an in-order queue on a device; timing lets Since measure its events.
func NewQueue(dev int, timing bool) (Queue, error) {
	flags := C.int(C.GXPU_IN_ORDER)
	if timing {
		flags |= C.GXPU_TIMING
	}
	var q C.U
	err := check("queue", C.goccl_queue_new(C.int(dev), flags, &q))
	return Queue(q), err
}

// Close frees the queue. What is on it is still done.
func (q Queue) Close() error { return check("~queue", C.goccl_queue_free(C.U(q))) }

// Wait returns when all on the queue is done.
func (q Queue) Wait() error { return check("queue::wait", C.goccl_queue_wait(C.U(q))) }

// Empty reports whether all on the queue is done.
func (q Queue) Empty() (bool, error) {
	var empty C.int
	err := check("queue::empty", C.goccl_queue_empty(C.U(q), &empty))
	return empty != 0, err
}

// After lets what follows on the queue wait for an event.
func (q Queue) After(e Event) error {
	return check("queue::submit_barrier", C.goccl_queue_after(C.U(q), C.U(e)))
}

// Copy copies in the order of the queue, and does not wait.
func (q Queue) Copy(dst, src uintptr, bytes int) error {
	return check("queue::memcpy", C.goccl_copy(C.U(q), C.U(dst), C.U(src), C.size_t(bytes)))
}

// Put copies from Go memory, and waits.
func (q Queue) Put(dst uintptr, src unsafe.Pointer, bytes int) error {
	return check("queue::memcpy", C.goccl_put(C.U(q), C.U(dst), src, C.size_t(bytes)))
}

// Get copies to Go memory, and waits.
func (q Queue) Get(dst unsafe.Pointer, src uintptr, bytes int) error {
	return check("queue::memcpy", C.goccl_get(C.U(q), dst, C.U(src), C.size_t(bytes)))
}

// Set fills memory in the order of the queue, and does not wait.
func (q Queue) Set(dst uintptr, v byte, bytes int) error {
	return check("queue::memset", C.goccl_set(C.U(q), C.U(dst), C.int(v), C.size_t(bytes)))
}

// New allocates memory.
func New(dev int, kind Kind, bytes int) (uintptr, error) {
	var p C.U
	err := check("malloc_"+[...]string{"device", "host", "shared"}[kind],
		C.goccl_mem_new(C.int(dev), C.int(kind), C.size_t(bytes), &p))
	return uintptr(p), err
}

// Free frees what New has made on dev.
func Free(dev int, p uintptr) error { return check("free", C.goccl_mem_free(C.int(dev), C.U(p))) }

// KindOf is what kind of memory an address is of, as dev sees it.
func KindOf(dev int, p uintptr) (Kind, error) {
	var kind C.int
	err := check("get_pointer_type", C.goccl_mem_kind(C.int(dev), C.U(p), &kind))
	return Kind(kind), err
}

// NewEvent makes an event, which has happened.
func NewEvent() (Event, error) {
	var e C.U
	err := check("event", C.goccl_event_new(&e))
	return Event(e), err
}

// Close frees the event.
func (e Event) Close() error { return check("~event", C.goccl_event_free(C.U(e))) }

// Record makes the event the present end of a queue.
func (e Event) Record(q Queue) error {
	return check("queue::submit_barrier", C.goccl_event_record(C.U(e), C.U(q)))
}

// Done reports whether the queue has got to the event.
func (e Event) Done() (bool, error) {
	var done C.int
	err := check("event::get_info", C.goccl_event_done(C.U(e), &done))
	return done != 0, err
}

// Wait returns when the queue has got to the event.
func (e Event) Wait() error { return check("event::wait", C.goccl_event_wait(C.U(e))) }

// Since is the time from start to e, both recorded on queues with timing.
func (e Event) Since(start Event) (seconds float64, err error) {
	var s C.double
	err = check("event::get_profiling_info", C.goccl_event_since(C.U(e), C.U(start), &s))
	return float64(s), err
}
