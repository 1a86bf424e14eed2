//go:build linux && cgo && (nccl || rccl)

package gpu

/*
#cgo CFLAGS: -std=gnu11 -Wall
#cgo LDFLAGS: -ldl

// Nothing in the library calls Go back. What these are given they do not keep, so it may stay on the stack.
#cgo nocallback dev_put
#cgo noescape dev_put
#cgo nocallback dev_get
#cgo noescape dev_get
#cgo nocallback dev_elapsed
#cgo noescape dev_elapsed
#cgo nocallback dev_capturing
#cgo noescape dev_capturing
#cgo nocallback dev_copy_async
#cgo nocallback dev_set_async
#cgo nocallback dev_query_stream
#cgo nocallback dev_query_event
#cgo nocallback dev_wait_event
#cgo nocallback dev_record
#cgo nocallback dev_launch

#include "driver.h"
*/
import "C"

import "unsafe"

// library is a table in C memory, which cgo need not look into.
type library struct {
	t      *C.gdev
	file   string
	isFake bool
}

func (l *library) Table() unsafe.Pointer { return unsafe.Pointer(l.t) }
func (l *library) Path() string          { return l.file }
func (l *library) Fake() bool            { return l.isFake }

func (l *library) Text(c Code) (name, text string) {
	return C.GoString(C.dev_error_name(l.t, C.int(c))), C.GoString(C.dev_error_text(l.t, C.int(c)))
}

func (l *library) Versions() (driver, runtime int, c Code) {
	var d, r C.int
	c = Code(C.dev_versions(l.t, &d, &r))
	return int(d), int(r), c
}

// Count: CUDA does not write the number where there is none.
func (l *library) Count() (int, Code) {
	var n C.int
	c := Code(C.dev_count(l.t, &n))
	return int(n), c
}

func (l *library) Name(dev int) (string, Code) {
	var text [256]C.char
	c := Code(C.dev_name(l.t, C.int(dev), &text[0]))
	return C.GoString(&text[0]), c
}

func (l *library) Bus(dev int) (string, Code) {
	var text [32]C.char
	c := Code(C.dev_bus(l.t, C.int(dev), &text[0], C.int(len(text))))
	return C.GoString(&text[0]), c
}

func (l *library) Memory(dev int) (free, total uint64, c Code) {
	var f, t C.size_t
	c = Code(C.dev_memory(l.t, C.int(dev), &f, &t))
	return uint64(f), uint64(t), c
}

func (l *library) Synchronize(dev int) Code { return Code(C.dev_synchronize(l.t, C.int(dev))) }

func (l *library) CanAccess(dev, peer int) (bool, Code) {
	var can C.int
	c := Code(C.dev_can_access(l.t, C.int(dev), C.int(peer), &can))
	return can != 0, c
}

func (l *library) EnablePeer(dev, peer int) Code {
	return Code(C.dev_enable_peer(l.t, C.int(dev), C.int(peer)))
}

func (l *library) DisablePeer(dev, peer int) Code {
	return Code(C.dev_disable_peer(l.t, C.int(dev), C.int(peer)))
}

func (l *library) Alloc(dev int, k Kind, bytes int) (uintptr, Code) {
	var p C.uintptr_t
	c := Code(C.dev_alloc(l.t, C.int(dev), C.int(k), C.size_t(bytes), &p))
	return uintptr(p), c
}

func (l *library) Free(dev int, k Kind, p uintptr) Code {
	return Code(C.dev_free(l.t, C.int(dev), C.int(k), C.uintptr_t(p)))
}

func (l *library) Put(dev int, dst uintptr, src unsafe.Pointer, bytes int) Code {
	return Code(C.dev_put(l.t, C.int(dev), C.uintptr_t(dst), src, C.size_t(bytes)))
}

func (l *library) Get(dev int, dst unsafe.Pointer, src uintptr, bytes int) Code {
	return Code(C.dev_get(l.t, C.int(dev), dst, C.uintptr_t(src), C.size_t(bytes)))
}

func (l *library) CopyAsync(dev int, stream, dst, src uintptr, bytes int) Code {
	return Code(C.dev_copy_async(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(dst), C.uintptr_t(src),
		C.size_t(bytes)))
}

func (l *library) Set(dev int, dst uintptr, v byte, bytes int) Code {
	return Code(C.dev_set(l.t, C.int(dev), C.uintptr_t(dst), C.int(v), C.size_t(bytes)))
}

func (l *library) SetAsync(dev int, stream, dst uintptr, v byte, bytes int) Code {
	return Code(C.dev_set_async(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(dst), C.int(v), C.size_t(bytes)))
}

func (l *library) Pointer(dev int, p uintptr) (typ, on int, c Code) {
	var t, d C.int
	c = Code(C.dev_pointer(l.t, C.int(dev), C.uintptr_t(p), &t, &d))
	return int(t), int(d), c
}

func (l *library) NewStream(dev int) (uintptr, Code) {
	var s C.uintptr_t
	c := Code(C.dev_new_stream(l.t, C.int(dev), &s))
	return uintptr(s), c
}

func (l *library) CloseStream(dev int, stream uintptr) Code {
	return Code(C.dev_close_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) SyncStream(dev int, stream uintptr) Code {
	return Code(C.dev_sync_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) QueryStream(dev int, stream uintptr) Code {
	return Code(C.dev_query_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) WaitEvent(dev int, stream, event uintptr) Code {
	return Code(C.dev_wait_event(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(event)))
}

func (l *library) NewEvent(dev int, timing bool) (uintptr, Code) {
	var e C.uintptr_t
	var t C.int
	if timing {
		t = 1
	}
	c := Code(C.dev_new_event(l.t, C.int(dev), t, &e))
	return uintptr(e), c
}

func (l *library) CloseEvent(dev int, event uintptr) Code {
	return Code(C.dev_close_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) Record(dev int, event, stream uintptr) Code {
	return Code(C.dev_record(l.t, C.int(dev), C.uintptr_t(event), C.uintptr_t(stream)))
}

func (l *library) QueryEvent(dev int, event uintptr) Code {
	return Code(C.dev_query_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) SyncEvent(dev int, event uintptr) Code {
	return Code(C.dev_sync_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) Elapsed(dev int, from, to uintptr) (float32, Code) {
	var ms C.float
	c := Code(C.dev_elapsed(l.t, C.int(dev), C.uintptr_t(from), C.uintptr_t(to), &ms))
	return float32(ms), c
}

func (l *library) BeginCapture(dev int, stream uintptr) Code {
	return Code(C.dev_begin_capture(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) EndCapture(dev int, stream uintptr) (uintptr, Code) {
	var g C.uintptr_t
	c := Code(C.dev_end_capture(l.t, C.int(dev), C.uintptr_t(stream), &g))
	return uintptr(g), c
}

func (l *library) Capturing(dev int, stream uintptr) (bool, Code) {
	var state C.int
	c := Code(C.dev_capturing(l.t, C.int(dev), C.uintptr_t(stream), &state))
	return state != C.GDEV_CAPTURE_NONE, c
}

func (l *library) Launch(dev int, graph, stream uintptr) Code {
	return Code(C.dev_launch(l.t, C.int(dev), C.uintptr_t(graph), C.uintptr_t(stream)))
}

func (l *library) CloseGraph(dev int, graph uintptr) Code {
	return Code(C.dev_close_graph(l.t, C.int(dev), C.uintptr_t(graph)))
}
