//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/op"
)

// end is one rank's end of a communicator. It blocks: a call of one that does not makes a thread
// from NCCL 2.23.4 on (ncclGroupEndInternal, src/group.cc), and what is under way then may be
// joined by one thread alone. A call that blocks waits for peers where connections are made, so the
// ranks meet on the control plane before such a call (package ccl), and a start is made on a
// goroutine of its own.
type end struct {
	lib   *library
	group engine.Group

	// c is for the calls of the rank itself, of which there is one at a time. inside is set while it is in the library.
	inside ordered.Flag
	c      *C.gccl_end
	heads  []op.Head
	counts []int

	mu     sync.Mutex // of Run and of what frees, which last
	staged staging
	least  least

	aside aside
	marks marks
	spans spans

	state   atomic.Int32  // aborted, closed, away, kept
	ended   chan struct{} // closed when Abort is done
	closing closing
}

// aside is for questions about the state, at any time, and for the end. A question holds mu: NCCL
// frees a communicator at once, with calls inside it (ncclCommAbort, src/init.cc). Once gone is set
// there are no more.
type aside struct {
	mu   sync.Mutex
	c    *C.gccl_end
	gone bool
}

// What an end may be, besides usable.
const (
	aborted int32 = 1 << iota
	closed
	away // a call of the rank's own has been left inside the library, which ends inside
	kept // Abort has revoked the communicator, and not freed it
)

// newEnd has no communicator yet.
func (l *library) newEnd(g engine.Group) *end {
	e := &end{lib: l, group: g, ended: make(chan struct{}), closing: closing{patience: closeWait}}
	for _, p := range []**C.gccl_end{&e.c, &e.aside.c, &e.marks.c, &e.spans.c} {
		c := l.cell(g.Device)
		if l.v.currentDevice {
			c.asks = 1
		}
		c.rank, c.size = C.int(g.Rank), C.int(g.Size)
		*p = c
	}
	e.c.hints = hintsOf(&g)
	return e
}

// cell is what a call into C needs of the library and of a device.
func (l *library) cell(device int) *C.gccl_end {
	c := (*C.gccl_end)(C.calloc(1, C.size_t(unsafe.Sizeof(C.gccl_end{}))))
	c.ccl, c.dev, c.prefix, c.device = l.t, (*C.gdev)(l.v.runtime.Table()), l.prefix, C.int(device)
	for t := range op.Types {
		typ, width := l.wire(t)
		c.types[t], c.widths[t] = C.schar(typ), C.uchar(width)
	}
	return c
}

// usable is nil while calls may be made.
func (e *end) usable() error {
	switch s := e.state.Load(); {
	case s&closed != 0:
		return errClosed
	case s&aborted != 0:
		return errAborted
	}
	return nil
}

// enter comes before a call of the rank's own, which ends with e.inside.Clear. Abort and Close set
// state, and look at inside after a fence: so either enter sees the state, or they see the call.
func (e *end) enter() error {
	e.inside.Set()
	if s := e.state.Load(); s != 0 {
		if s&away == 0 {
			e.inside.Clear()
		}
		return e.usable()
	}
	return nil
}

// returned waits until no call of the rank's own is in the library, at most so long, and reports
// whether it has come to that. state keeps others from beginning.
func (e *end) returned(wait time.Duration) bool {
	ordered.Heavy()
	for over := lived.For(wait); e.inside.Load(); time.Sleep(100 * time.Microsecond) {
		if over() {
			return false
		}
	}
	return true
}

// result is the error of a call on c.
func (e *end) result(r C.int) error {
	if r == C.GCCL_SUCCESS {
		return nil
	}
	return e.lib.failure(&e.c.fault)
}

// stop is why a wait should end.
func stop(ctx context.Context, check func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if check != nil {
		return check()
	}
	return nil
}

// pause is the i-th of a wait: others first, then longer and longer sleeps.
func pause(i int) {
	if i < 256 {
		runtime.Gosched()
		return
	}
	time.Sleep(min(time.Duration(i)*100*time.Nanosecond, time.Millisecond))
}

// Err is the library's asynchronous error, unless the communicator is being freed.
func (e *end) Err() error {
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	if e.aside.gone {
		return nil
	}
	if r := C.gcclAsync(e.aside.c); r != C.GCCL_SUCCESS && r != C.GCCL_IN_PROGRESS {
		return e.lib.failure(&e.aside.c.fault)
	}
	return nil
}

// Native is the ncclComm_t, 0 once it has been freed.
func (e *end) Native() uintptr {
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	if e.aside.gone {
		return 0
	}
	return uintptr(unsafe.Pointer(e.aside.c.comm))
}
