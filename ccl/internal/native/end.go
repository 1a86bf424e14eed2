//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/engine"
	"github.com/goccl/goccl/internal/signals"
)

// end is one rank's end of a communicator.
type end struct {
	lib   *library
	group engine.Group

	// c is for the calls of the rank itself, which hold the lock of the device. Where the library can start
	// a communicator that does not block, these calls return at once, and it is that kind.
	device *deviceLock
	c      *C.gccl_end
	blocks bool
	calls  []C.gccl_call
	counts []C.size_t

	mu     sync.Mutex // of Run, Split and Close, which last; taken before device
	staged staging

	// aside is for what may be asked at any time: the state, marks. These calls hold asideMu, and
	// come to no end of their own (gone) once the communicator is being freed. NCCL frees it at once, whoever
	// is inside (ncclCommAbort, src/init.cc), and from 2.26.2 on ncclCommGetAsyncError ends the thread of a call
	// that was under way, without a lock, so it must be one caller's at a time.
	asideMu sync.Mutex
	aside   *C.gccl_end
	marks   []*mark
	unused  *mark // the first of those that are free
	gone    bool

	state atomic.Int32  // aborted, closed
	ended chan struct{} // closed when Abort is done
	once  sync.Once
	left  error // of Close
}

// What an end may be, besides usable. It is busy while the library makes the connections of a call, which takes until the
// peers call as well; the lock of the device is not held meanwhile, so that other communicators can go on.
const (
	aborted = 1 << iota
	closed
	busy
)

// splitter and shrinker are ends whose library has the call.
type (
	splitter struct{ *end }
	shrinker struct{ splitter }
)

// engine is e with what its library can do.
func (e *end) engine() engine.Engine {
	switch {
	case e.lib.t.CommSplit == nil || e.blocks:
		return e
	case e.lib.t.CommShrink == nil:
		return splitter{e}
	}
	return shrinker{splitter{e}}
}

// newEnd has no communicator yet.
func (l *library) newEnd(g engine.Group) *end {
	e := &end{lib: l, group: g, device: l.lock(g.Device), ended: make(chan struct{})}
	for _, p := range []**C.gccl_end{&e.c, &e.aside} {
		c := (*C.gccl_end)(C.calloc(1, C.size_t(unsafe.Sizeof(C.gccl_end{}))))
		c.ccl, c.dev = l.t, (*C.gdev)(l.v.runtime.Table())
		c.prefix = l.prefix
		*(*uintptr)(unsafe.Pointer(&c.mallocAsync)) = l.mallocAsync
		*(*uintptr)(unsafe.Pointer(&c.freeAsync)) = l.freeAsync
		c.device, c.rank, c.size = C.int(g.Device), C.int(g.Rank), C.int(g.Size)
		*p = c
	}
	return e
}

// New makes this rank's end of a communicator. With a library that has no configurations (NCCL before
// 2.14) the call cannot be interrupted: where ctx ends, its thread is given up.
func (l *library) New(ctx context.Context, g engine.Group, id []byte) (engine.Engine, error) {
	var uid C.g_uid
	if len(id) != int(unsafe.Sizeof(uid)) {
		return nil, fmt.Errorf("%s: a unique id has %d bytes, this one %d", l.v.name, unsafe.Sizeof(uid), len(id))
	}
	if _, err := l.v.runtime.Device(g.Device); err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&uid)), len(id)), id)
	restore := signals.Guard() // the library loads plugins of its own now
	defer restore()
	e := l.newEnd(g)
	e.blocks = l.t.CommInitRankConfig == nil
	if e.blocks {
		return e.startBlocking(ctx, uid)
	}
	return e.start(ctx, func() C.int { return C.gcclInit(e.c, &uid, 0) }, nil, false)
}

// Split makes ends of the parts of the parent's group.
func (p splitter) Split(ctx context.Context, g engine.Group) (engine.Engine, error) {
	e := p.lib.newEnd(g)
	return e.start(ctx, func() C.int { return C.gcclSplit(p.c, e.c, C.int(g.Color), C.int(g.Key)) }, p.end, false)
}

// Shrink makes a communicator without the ranks in lost, which need not call it, and ends the calls
// of the parent that are under way. The parent must not have been aborted: NCCL frees it then.
func (p shrinker) Shrink(ctx context.Context, g engine.Group, lost []int) (engine.Engine, error) {
	ranks := make([]C.int, len(lost)+1)
	for i, r := range lost {
		ranks[i] = C.int(r)
	}
	e := p.lib.newEnd(g)
	return e.start(ctx, func() C.int { return C.gcclShrink(p.c, e.c, &ranks[0], C.int(len(lost))) }, p.end, true)
}

// start makes the communicator with init and waits until it is there. A communicator of a parent is
// made when both have come to an end. It waits for a call of the parent that is under way, unless it shrinks, which ends such calls.
func (e *end) start(ctx context.Context, init func() C.int, parent *end, shrinks bool) (engine.Engine, error) {
	on := e
	if parent != nil {
		parent.mu.Lock()
		defer parent.mu.Unlock()
		on = parent
	}
	for i := 0; ; i++ {
		e.device.Lock()
		if shrinks || on.state.Load()&busy == 0 {
			break
		}
		e.device.Unlock()
		if err := stop(ctx, e.group.Check); err != nil {
			e.free()
			return nil, err
		}
		pause(i)
	}
	if err := on.usable(); err != nil { // looked at under the lock, for which Abort waits
		e.device.Unlock()
		e.free()
		return nil, err
	}
	r := init()
	e.device.Unlock()
	err := e.result(r)
	if parent == nil {
		e.aside.comm = e.c.comm
	}
	if r == C.GCCL_IN_PROGRESS {
		var answered bool
		if answered, err = on.settle(ctx, e.group.Check); !answered && parent != nil {
			go e.outlive(parent)
			return nil, err
		}
	}
	e.aside.comm = e.c.comm
	if err == nil && e.c.comm != nil && parent != nil {
		_, err = e.settle(ctx, e.group.Check)
	}
	if err == nil && e.c.comm == nil { // a negative color
		e.free()
		return nil, nil
	}
	if err == nil {
		err = e.ready()
	}
	if err != nil {
		if e.c.comm != nil {
			e.Abort()
		}
		go e.Close() // which waits for the library
		return nil, err
	}
	return e.engine(), nil
}

// outlive frees what becomes of a Split or Shrink for which nobody waits any more. The library stores the child when
// it is done with it, after a failure too (ncclCommInitRankFunc, src/init.cc of NCCL 2.18 and later), so e stays until
// the parent has its answer, or has been freed.
func (e *end) outlive(parent *end) {
	for i := 0; ; i++ {
		r, there, _ := parent.ask()
		if !there {
			if parent.state.Load()&aborted != 0 {
				<-parent.ended
			}
			break
		}
		if r != C.GCCL_IN_PROGRESS {
			break
		}
		pause(i)
	}
	e.aside.comm = e.c.comm
	if e.c.comm != nil {
		e.Abort()
	}
	e.Close()
}

// startBlocking does not wait longer than ctx for a call that has no end of its own.
func (e *end) startBlocking(ctx context.Context, id C.g_uid) (engine.Engine, error) {
	done := make(chan error, 1)
	go func() {
		if err := e.result(C.gcclInit(e.c, &id, -1)); err != nil {
			done <- err
			return
		}
		e.aside.comm = e.c.comm
		done <- e.ready()
	}()
	for i := 0; ; i++ {
		select {
		case err := <-done:
			if err != nil {
				e.Close()
				return nil, err
			}
			return e.engine(), nil
		default:
		}
		if err := stop(ctx, e.group.Check); err != nil {
			return nil, fmt.Errorf("%w; %s cannot be interrupted while it starts, so its thread is given up", err, e.lib.Version())
		}
		pause(i)
	}
}

// ready makes what calls need of the device.
func (e *end) ready() error {
	var scratch C.U
	if err := e.result(C.gcclAlloc(e.c, &scratch, 256)); err != nil {
		return err
	}
	*(*C.U)(unsafe.Pointer(&e.c.scratch)) = scratch
	return nil
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

// enter takes the lock of the device for a call of the rank's own, once the one that may be under way has its answer.
func (e *end) enter() error {
	for i := 0; ; i++ {
		e.device.Lock()
		if e.state.Load() == 0 {
			return nil
		}
		e.device.Unlock()
		if err := e.usable(); err != nil {
			return err
		}
		pause(i)
	}
}

// result is the error of a call on c.
func (e *end) result(r C.int) error {
	if r == C.GCCL_SUCCESS || r == C.GCCL_IN_PROGRESS {
		return nil
	}
	return e.lib.failure(&e.c.fault)
}

// settle waits until a communicator that does not block has done what it was asked: then it has answered.
func (e *end) settle(ctx context.Context, check func() error) (answered bool, err error) {
	for i := 0; ; i++ {
		r, there, err := e.ask()
		if e.state.Load()&aborted != 0 || !there {
			return false, errAborted
		}
		if r != C.GCCL_IN_PROGRESS {
			return true, err
		}
		if err := stop(ctx, check); err != nil {
			return false, err
		}
		pause(i)
	}
}

// ask is the library's state of the communicator, unless that is being freed.
func (e *end) ask() (r C.int, there bool, err error) {
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	if e.gone {
		return C.GCCL_SUCCESS, false, nil
	}
	if r = C.gcclAsync(e.aside); r != C.GCCL_SUCCESS && r != C.GCCL_IN_PROGRESS {
		err = e.lib.failure(&e.aside.fault)
	}
	return r, true, err
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

// Err is the library's asynchronous error.
func (e *end) Err() error {
	_, _, err := e.ask()
	return err
}

// Native is the ncclComm_t, 0 once it has been freed.
func (e *end) Native() uintptr {
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	if e.gone {
		return 0
	}
	return uintptr(unsafe.Pointer(e.aside.comm))
}

// Interruptible is true: ncclCommAbort ends kernels as well.
func (e *end) Interruptible() bool { return true }

// Abort ends what is under way, on a goroutine of its own, since ncclCommAbort waits for it to end.
func (e *end) Abort() {
	if e.state.Or(aborted)&aborted == 0 {
		go e.abort()
	}
}

// lockWait is how long Abort waits for a call of the rank's own to come back from the library. It does at once,
// unless the device's queue is full; then nothing but the abort ends it.
const lockWait = 100 * time.Millisecond

func (e *end) abort() {
	defer close(e.ended)
	if !e.leave() {
		return
	}
	until := time.Now().Add(lockWait)
	if e.tryLock(&e.mu, until) {
		defer e.mu.Unlock()
	}
	if e.tryLock(e.device, until) {
		e.device.Unlock() // later calls see that this has been aborted, and Abort may last: others of the device go on
	}
	if e.c.comm != nil {
		C.gcclAbort(e.c)
	}
}

// tryLock waits for m, but not longer than until, and not at all for calls that block.
func (e *end) tryLock(m tryLocker, until time.Time) bool {
	for !m.TryLock() {
		if e.blocks || time.Now().After(until) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// leave lets nobody ask for the state any more. It is true for the first caller, who is the one
// to free the library's communicator.
func (e *end) leave() (first bool) {
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	first = !e.gone
	e.gone = true
	return first
}

// closeWait is how long Close waits for the library, which has nothing left to do by then.
const closeWait = 10 * time.Second

// Close frees the communicator. What the library does not give back in time is given up: to free device memory
// under a call that runs would wait for it.
func (e *end) Close() error {
	e.once.Do(func() { e.left = e.close() })
	return e.left
}

func (e *end) close() (err error) {
	e.state.Or(closed)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := 0; e.under(); i++ {
		pause(i)
	}
	made := e.c.comm != nil
	if made && e.state.Load()&aborted == 0 {
		err = e.destroy()
	}
	if e.state.Load()&aborted != 0 {
		e.mu.Unlock()
		select {
		case <-e.ended:
			e.mu.Lock()
		case <-time.After(closeWait):
			e.mu.Lock()
			return fmt.Errorf("%s: ncclCommAbort has not returned after %v; what the communicator holds is lost", e.lib.Version(), closeWait)
		}
	}
	e.leave()
	e.free()
	return err
}

// under reports whether a call is under way. No other begins after Close has.
func (e *end) under() bool {
	e.device.Lock()
	defer e.device.Unlock()
	return e.state.Load()&busy != 0
}

// destroy ends a communicator that is well: it waits for what is under way. mu is held.
func (e *end) destroy() error {
	if !e.blocks {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		_, err := e.settle(ctx, nil) // a Split may be under way whose caller has gone
		if err == nil {
			err = e.result(C.gcclFinalize(e.c))
		}
		if err == nil {
			_, err = e.settle(ctx, nil)
		}
		if e.state.Load()&aborted != 0 {
			return nil
		}
		if err != nil {
			e.Abort()
			return err
		}
	}
	if !e.leave() {
		return nil
	}
	err := e.result(C.gcclDestroy(e.c))
	e.c.comm = nil
	return err
}

// free gives back what is not the library's. Nothing of it is in use any more.
func (e *end) free() {
	e.asideMu.Lock()
	defer e.asideMu.Unlock()
	e.gone = true
	if e.c == nil {
		return
	}
	e.staged.free(e.c)
	if e.c.scratch != nil {
		C.gcclFree(e.c, C.U(uintptr(e.c.scratch)))
	}
	for _, m := range e.marks {
		C.gcclEventFree(e.c, m.event)
	}
	C.free(unsafe.Pointer(e.c.copies))
	C.free(unsafe.Pointer(e.c))
	C.free(unsafe.Pointer(e.aside))
	e.c, e.aside, e.marks, e.unused = nil, nil, nil, nil
}
