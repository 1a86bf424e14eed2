//go:build (nccl || rccl) && cgo && linux

package native

// #cgo noescape gcclRecord
// #cgo nocallback gcclRecord
// #cgo nocallback gcclPassed
// #include "native.h"
import "C"

import "github.com/goccl/goccl/ccl/internal/engine"

// mark is an event. Events are recorded only where somebody asks, not with every call.
type mark struct {
	e     *end
	event C.U
	next  *mark
}

// Mark notes the end of the stream, but for one that is being captured, on which nothing runs.
func (e *end) Mark(stream uintptr) (engine.Mark, error) {
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	if e.aside == nil {
		return nil, errClosed
	}
	m := e.unused
	if m == nil {
		m = &mark{e: e}
		if r := C.gcclEvent(e.aside, &m.event); r != 0 {
			return nil, e.lib.failure(&e.aside.fault)
		}
		e.marks = append(e.marks, m)
	} else {
		e.unused = m.next
	}
	var capturing C.int
	r := C.gcclRecord(e.aside, m.event, C.U(stream), &capturing)
	if r != 0 || capturing != C.GDEV_CAPTURE_NONE {
		m.release()
	}
	switch {
	case r != 0:
		return nil, e.lib.failure(&e.aside.fault)
	case capturing != C.GDEV_CAPTURE_NONE:
		return nil, engine.ErrCapturing
	}
	return m, nil
}

// Passed asks the event.
func (m *mark) Passed() (bool, error) {
	e := m.e
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	if e.aside == nil {
		return false, errClosed
	}
	switch r := C.gcclPassed(e.aside, m.event); r {
	case 0:
		m.release()
		return true, nil
	case C.GDEV_NOT_READY:
		return false, nil
	}
	m.release()
	return false, e.lib.failure(&e.aside.fault)
}

// release makes m free for another Mark. asideMu is held.
func (m *mark) release() { m.next, m.e.unused = m.e.unused, m }
