//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
)

// hand gives the library calls, of which there is at least one, between the events of s, if that is not nil. The rank is inside.
func (e *end) hand(stream C.U, calls []engine.Call, s *span) C.int {
	if len(calls) > len(e.calls) {
		e.calls = make([]C.gccl_call, len(calls))
	}
	e.counts = e.counts[:0]
	for i := range calls {
		e.encode(&e.calls[i], &calls[i])
	}
	began := s != nil && C.gcclSpan(e.c, &s.events[0], 0, stream) != 0
	r := C.gcclIssue(e.c, &e.calls[0], C.int(len(calls)), unsafe.SliceData(e.counts), stream)
	if began && r == C.GCCL_SUCCESS {
		s.known = C.gcclSpan(e.c, &s.events[0], 1, stream) != 0
	}
	return r
}

// waits makes a call of the rank's own that may wait for other ranks inside the library. It is on a goroutine of its own: where
// Abort cannot make it come back, which takes ncclCommRevoke (NCCL 2.28.7), the caller does, and the call stays inside.
func waits(e *end, call func() C.int) error {
	if err := e.enter(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := e.result(call())
		e.state.And(^away)
		e.inside.Clear()
		done <- err
	}()
	tick := time.NewTicker(checkTick)
	defer tick.Stop()
	for e.state.Load()&aborted == 0 {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
	}
	e.state.Or(away) // before the next call of the rank's own, which is refused
	select {
	case err := <-done:
		e.state.And(^away)
		return err
	case <-e.ended:
		return errAborted // the call's end clears away
	}
}
