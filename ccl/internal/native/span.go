//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// spans are an end's pairs of events that take the time of calls. An event is recorded as a part of
// the call and without mu: where the stream is full it waits for room, as the call does.
type spans struct {
	mu     sync.Mutex
	c      *C.gccl_end // nil once closed
	all    []*span
	unused *span // the first of those that are free
}

// span is a pair of events, before and after calls. They are made when they are first recorded.
type span struct {
	e      *end
	events [2]C.U
	next   *span
	known  bool // both have been recorded
}

// issueAs hands over calls that may wait inside the library, or between two events that take their time.
func (e *end) issueAs(stream uintptr, calls []*op.Call, how engine.How) (engine.Span, error) {
	var s *span
	if how&engine.Timed != 0 {
		s = e.spans.get(e)
	}
	var err error
	if how&engine.Connecting != 0 {
		err = waits(e, func() C.int { return e.hand(C.U(stream), calls, s) })
	} else if err = e.enter(); err == nil {
		err = e.result(e.hand(C.U(stream), calls, s))
		e.inside.Clear()
	}
	if s == nil || err != nil { // a call that failed may still be inside, with its events
		return nil, err
	}
	if !s.known {
		s.release()
		return nil, nil
	}
	return s, nil
}

// get is a span that is free, nil where no event may be recorded now.
func (ss *spans) get(e *end) *span {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.c == nil || !mayQuery(e) {
		return nil
	}
	s := ss.unused
	if s == nil {
		s = &span{e: e}
		ss.all = append(ss.all, s)
	} else {
		ss.unused = s.next
	}
	s.known = false
	return s
}

// release makes s free for another call.
func (s *span) release() {
	ss := &s.e.spans
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.next, ss.unused = ss.unused, s
}

// Took asks the events, which have passed.
func (s *span) Took() (time.Duration, bool) {
	defer s.release()
	ss := &s.e.spans
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.c == nil {
		return 0, false
	}
	if v := s.e.lib.v; v.queryBreaks {
		if !v.runtime.HoldCaptures() {
			return 0, false
		}
		defer v.runtime.ReleaseCaptures()
	}
	var ms C.float
	if C.gcclElapsed(ss.c, s.events[0], s.events[1], &ms) != 0 {
		return 0, false
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), true
}

// close frees the events.
func (ss *spans) close() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.all {
		for _, event := range s.events {
			if event != 0 {
				C.gcclEventFree(ss.c, event)
			}
		}
	}
	C.free(unsafe.Pointer(ss.c))
	ss.c, ss.all, ss.unused = nil, nil, nil
}
