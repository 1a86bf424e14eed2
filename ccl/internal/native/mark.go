//go:build (nccl || rccl) && cgo && linux

package native

// #cgo noescape gcclRecord
// #cgo nocallback gcclRecord
// #cgo nocallback gcclPassed
// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
)

// marks are an end's events. They have a lock of their own, and Abort does not take it: an event is
// not recorded before the stream has room, and where a kernel has no end only Abort makes some.
type marks struct {
	mu     sync.Mutex
	c      *C.gccl_end // nil once closed
	all    []*mark
	unused *mark // the first of those that are free
}

// mark is an event. Events are recorded only where somebody asks, not with every call.
type mark struct {
	e     *end
	event C.U
	next  *mark
}

// Mark notes the end of the stream, but for one that is being captured, on which nothing runs.
func (e *end) Mark(stream uintptr) (engine.Mark, error) {
	ms := &e.marks
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if e.state.Load()&closed != 0 || ms.c == nil {
		return nil, errClosed
	}
	var capturing C.int
	if !mayQuery(e) {
		switch r := C.gcclRecord(ms.c, 0, C.U(stream), &capturing); {
		case r != 0:
			return nil, e.lib.failure(&ms.c.fault)
		case capturing != C.GDEV_CAPTURE_NONE:
			return nil, engine.ErrCapturing
		}
		return nil, engine.ErrNotNow
	}
	m := ms.unused
	if m == nil {
		m = &mark{e: e}
		if r := C.gcclEvent(ms.c, &m.event); r != 0 {
			return nil, e.lib.failure(&ms.c.fault)
		}
		ms.all = append(ms.all, m)
	} else {
		ms.unused = m.next
	}
	r := C.gcclRecord(ms.c, m.event, C.U(stream), &capturing)
	if r != 0 || capturing != C.GDEV_CAPTURE_NONE {
		m.release()
	}
	switch {
	case r != 0:
		return nil, e.lib.failure(&ms.c.fault)
	case capturing != C.GDEV_CAPTURE_NONE:
		return nil, engine.ErrCapturing
	}
	return m, nil
}

// mayQuery is false while a stream is being captured where asking for an event breaks any capture.
// Passed, which asks, also keeps captures from beginning.
func mayQuery(e *end) bool { return !e.lib.v.queryBreaks || !e.lib.v.runtime.Capturing() }

// Passed asks the event.
func (m *mark) Passed() (bool, error) {
	ms := &m.e.marks
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.c == nil {
		return false, errClosed
	}
	if m.e.lib.v.queryBreaks {
		if !m.e.lib.v.runtime.HoldCaptures() {
			return false, nil
		}
		defer m.e.lib.v.runtime.ReleaseCaptures()
	}
	switch r := C.gcclPassed(ms.c, m.event); r {
	case 0:
		m.release()
		return true, nil
	case C.GDEV_NOT_READY:
		return false, nil
	}
	m.release()
	return false, m.e.lib.failure(&ms.c.fault)
}

// release makes m free for another Mark. m.e.marks.mu is held.
func (m *mark) release() { m.next, m.e.marks.unused = m.e.marks.unused, m }

// close frees the events.
func (ms *marks) close() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.all {
		C.gcclEventFree(ms.c, m.event)
	}
	C.free(unsafe.Pointer(ms.c))
	ms.c, ms.all, ms.unused = nil, nil, nil
}
