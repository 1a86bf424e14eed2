//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/lived"
)

// Abort ends what is under way, on a goroutine of its own, since ncclCommAbort waits for it to end.
func (e *end) Abort() {
	if e.state.Or(aborted)&aborted == 0 {
		go e.abort()
	}
}

// callWait is how long Abort waits for a call of the rank's own to come back from the library. Such
// a call does at once, unless connections are made, for which its peers have come, or the device's
// queue is full, which a kernel without an end keeps so.
const callWait = time.Second

// abort frees nothing under a call that is inside: ncclCommAbort waits for none of a communicator
// that blocks, and frees what they use (commReclaim, src/init.cc). From 2.28.7 on there is a call
// that only ends what is under way. Where the library also shrinks, that is all: the communicator
// is kept for a Shrink, and Close frees it.
func (e *end) abort() {
	defer close(e.ended)
	if !e.leave() {
		return
	}
	inside := !e.returned(callWait)
	revoked := (inside || e.lib.t.CommShrink != nil) && e.aside.c.comm != nil && e.revoke()
	switch {
	case inside && (!revoked || !e.returned(callWait)):
		e.closing.lost = fmt.Errorf("%s: a call has not returned from the library %v after the communicator failed: the call and its memory are abandoned, and its work on the device goes on until this process ends",
			e.lib.Version(), callWait)
	case revoked && e.lib.t.CommShrink != nil:
		e.state.Or(kept)
	default:
		e.abortNow()
	}
}

// revoke ends what is under way and frees nothing, where the library has that.
func (e *end) revoke() bool { return C.gcclRevoke(e.aside.c) == C.GCCL_SUCCESS }

// abortNow frees the communicator. Nobody is inside.
func (e *end) abortNow() {
	if e.aside.c.comm != nil {
		C.gcclAbort(e.aside.c)
	}
}

// leave ends the questions about the state. The first call of it is true: its caller frees the library's communicator.
func (e *end) leave() (first bool) {
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	first = !e.aside.gone
	e.aside.gone = true
	return first
}

// closeWait is how long Close waits for the library, which has nothing left to do by then.
const closeWait = 10 * time.Second

// closing is what Close does once.
type closing struct {
	once     sync.Once
	patience time.Duration          // closeWait
	waitsFor atomic.Pointer[string] // one of these
	lost     error                  // of Abort, before ended: why it has given the communicator up
	err      error
}

// What Close waits for, one after the other.
var (
	forCalls   = "a call of this communicator has not returned from the library"
	forAbort   = "ncclCommAbort, or ncclCommRevoke before it, has not returned: a graph captured from the communicator may still be open, or a kernel may be running"
	forDestroy = "ncclCommDestroy has not returned: a graph captured from the communicator may still be open, or other ranks may not have closed theirs"
)

// Close frees the communicator, on a goroutine of its own, which goes on where the library takes
// longer than patience: to free device memory under a call that runs would wait for it.
func (e *end) Close() error { return e.close(false) }

// gathers is the first version in which what frees a communicator waits for all ranks of the host
// to do so (bootstrapIntraNodeBarrier in commDestroySync, src/init.cc; RCCL's the same), unless it
// aborts.
const gathers = 23100

// CloseApart aborts the communicator, which nothing of is under way.
func (e *end) CloseApart() error { return e.close(true) }

func (e *end) close(apart bool) error {
	c := &e.closing
	c.once.Do(func() {
		e.state.Or(closed)
		c.waitsFor.Store(&forCalls)
		done := make(chan error, 1)
		limit, end := lived.Within(context.Background(), c.patience)
		defer end()
		go func() { done <- release(e, apart) }()
		select {
		case c.err = <-done:
		case <-limit.Done():
			c.err = fmt.Errorf("%s: after %v, %s; its resources are not released before that", e.lib.Version(), c.patience,
				*c.waitsFor.Load())
			if c.waitsFor.Load() == &forCalls {
				e.Abort()
			}
		}
	})
	return c.err
}

// release waits until nobody is inside and frees everything.
func release(e *end, apart bool) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.state.Load()&aborted == 0 && !e.returned(time.Millisecond) {
	}
	if e.state.Load()&aborted == 0 && e.aside.c.comm != nil && e.leave() {
		e.closing.waitsFor.Store(&forDestroy)
		if apart {
			e.closing.waitsFor.Store(&forAbort)
		}
		err = destroy(e, apart)
	}
	if e.state.Load()&aborted != 0 {
		e.closing.waitsFor.Store(&forAbort)
		<-e.ended
		if e.closing.lost != nil {
			return e.closing.lost
		}
		if e.state.Load()&kept != 0 {
			e.abortNow()
		}
	}
	e.leave()
	e.free()
	return err
}

// destroy frees the communicator, which has not failed.
func destroy(e *end, apart bool) (err error) {
	keep := func(r C.int) {
		if r != C.GCCL_SUCCESS && err == nil {
			err = e.lib.failure(&e.aside.c.fault)
		}
	}
	if apart {
		keep(C.gcclAbort(e.aside.c))
		return err
	}
	keep(C.gcclFinalize(e.aside.c))
	keep(C.gcclDestroy(e.aside.c))
	return err
}

// free gives back what is not the library's. Nothing of it is in use any more.
func (e *end) free() {
	e.marks.close()
	e.spans.close()
	e.staged.free(e.c)
	if e.c.scratch != nil {
		C.gcclFree(e.c, C.U(uintptr(e.c.scratch)))
	}
	C.free(unsafe.Pointer(e.c.calls))
	C.free(unsafe.Pointer(e.c.copies))
	C.free(unsafe.Pointer(e.c.scaled))
	C.free(unsafe.Pointer(e.c.hints.netName))
	C.free(unsafe.Pointer(e.c.hints.commName))
	C.free(unsafe.Pointer(e.c))
	C.free(unsafe.Pointer(e.aside.c))
	e.c, e.aside.c = nil, nil
}
