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

func (l *library) table() unsafe.Pointer { return unsafe.Pointer(l.t) }
func (l *library) path() string          { return l.file }
func (l *library) fake() bool            { return l.isFake }

func (l *library) text(c code) (name, text string) {
	return C.GoString(C.dev_error_name(l.t, C.int(c))), C.GoString(C.dev_error_text(l.t, C.int(c)))
}

func (l *library) versions() (driver, runtime int, c code) {
	var d, r C.int
	c = code(C.dev_versions(l.t, &d, &r))
	return int(d), int(r), c
}

// count: CUDA does not write the number where there is none.
func (l *library) count() (int, code) {
	var n C.int
	c := code(C.dev_count(l.t, &n))
	return int(n), c
}

func (l *library) name(dev int) (string, code) {
	var text [256]C.char
	c := code(C.dev_name(l.t, C.int(dev), &text[0]))
	return C.GoString(&text[0]), c
}

func (l *library) bus(dev int) (string, code) {
	var text [32]C.char
	c := code(C.dev_bus(l.t, C.int(dev), &text[0], C.int(len(text))))
	return C.GoString(&text[0]), c
}

func (l *library) memory(dev int) (free, total uint64, c code) {
	var f, t C.size_t
	c = code(C.dev_memory(l.t, C.int(dev), &f, &t))
	return uint64(f), uint64(t), c
}

func (l *library) synchronize(dev int) code { return code(C.dev_synchronize(l.t, C.int(dev))) }

func (l *library) canAccess(dev, peer int) (bool, code) {
	var can C.int
	c := code(C.dev_can_access(l.t, C.int(dev), C.int(peer), &can))
	return can != 0, c
}

func (l *library) enablePeer(dev, peer int) code {
	return code(C.dev_enable_peer(l.t, C.int(dev), C.int(peer)))
}

func (l *library) disablePeer(dev, peer int) code {
	return code(C.dev_disable_peer(l.t, C.int(dev), C.int(peer)))
}

func (l *library) alloc(dev int, k kind, bytes int) (uintptr, code) {
	var p C.uintptr_t
	c := code(C.dev_alloc(l.t, C.int(dev), C.int(k), C.size_t(bytes), &p))
	return uintptr(p), c
}

func (l *library) free(dev int, k kind, p uintptr) code {
	return code(C.dev_free(l.t, C.int(dev), C.int(k), C.uintptr_t(p)))
}

func (l *library) put(dev int, dst uintptr, src unsafe.Pointer, bytes int) code {
	return code(C.dev_put(l.t, C.int(dev), C.uintptr_t(dst), src, C.size_t(bytes)))
}

func (l *library) get(dev int, dst unsafe.Pointer, src uintptr, bytes int) code {
	return code(C.dev_get(l.t, C.int(dev), dst, C.uintptr_t(src), C.size_t(bytes)))
}

func (l *library) copy(dev int, dst, src uintptr, bytes int) code {
	return code(C.dev_copy(l.t, C.int(dev), C.uintptr_t(dst), C.uintptr_t(src), C.size_t(bytes)))
}

func (l *library) copyAsync(dev int, stream, dst, src uintptr, bytes int) code {
	return code(C.dev_copy_async(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(dst), C.uintptr_t(src), C.size_t(bytes)))
}

func (l *library) set(dev int, dst uintptr, v byte, bytes int) code {
	return code(C.dev_set(l.t, C.int(dev), C.uintptr_t(dst), C.int(v), C.size_t(bytes)))
}

func (l *library) setAsync(dev int, stream, dst uintptr, v byte, bytes int) code {
	return code(C.dev_set_async(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(dst), C.int(v), C.size_t(bytes)))
}

func (l *library) pointer(dev int, p uintptr) (typ, on int, c code) {
	var t, d C.int
	c = code(C.dev_pointer(l.t, C.int(dev), C.uintptr_t(p), &t, &d))
	return int(t), int(d), c
}

func (l *library) newStream(dev int) (uintptr, code) {
	var s C.uintptr_t
	c := code(C.dev_new_stream(l.t, C.int(dev), &s))
	return uintptr(s), c
}

func (l *library) closeStream(dev int, stream uintptr) code {
	return code(C.dev_close_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) syncStream(dev int, stream uintptr) code {
	return code(C.dev_sync_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) queryStream(dev int, stream uintptr) code {
	return code(C.dev_query_stream(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) waitEvent(dev int, stream, event uintptr) code {
	return code(C.dev_wait_event(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(event)))
}

func (l *library) newEvent(dev int, timing bool) (uintptr, code) {
	var e C.uintptr_t
	var t C.int
	if timing {
		t = 1
	}
	c := code(C.dev_new_event(l.t, C.int(dev), t, &e))
	return uintptr(e), c
}

func (l *library) closeEvent(dev int, event uintptr) code {
	return code(C.dev_close_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) record(dev int, event, stream uintptr) code {
	return code(C.dev_record(l.t, C.int(dev), C.uintptr_t(event), C.uintptr_t(stream)))
}

func (l *library) queryEvent(dev int, event uintptr) code {
	return code(C.dev_query_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) syncEvent(dev int, event uintptr) code {
	return code(C.dev_sync_event(l.t, C.int(dev), C.uintptr_t(event)))
}

func (l *library) elapsed(dev int, from, to uintptr) (float32, code) {
	var ms C.float
	c := code(C.dev_elapsed(l.t, C.int(dev), C.uintptr_t(from), C.uintptr_t(to), &ms))
	return float32(ms), c
}

func (l *library) beginCapture(dev int, stream uintptr) code {
	return code(C.dev_begin_capture(l.t, C.int(dev), C.uintptr_t(stream)))
}

func (l *library) endCapture(dev int, stream uintptr) (uintptr, code) {
	var g C.uintptr_t
	c := code(C.dev_end_capture(l.t, C.int(dev), C.uintptr_t(stream), &g))
	return uintptr(g), c
}

func (l *library) capturing(dev int, stream uintptr) (bool, code) {
	var state C.int
	c := code(C.dev_capturing(l.t, C.int(dev), C.uintptr_t(stream), &state))
	return state != C.GDEV_CAPTURE_NONE, c
}

func (l *library) launch(dev int, graph, stream uintptr) code {
	return code(C.dev_launch(l.t, C.int(dev), C.uintptr_t(graph), C.uintptr_t(stream)))
}

func (l *library) closeGraph(dev int, graph uintptr) code {
	return code(C.dev_close_graph(l.t, C.int(dev), C.uintptr_t(graph)))
}
