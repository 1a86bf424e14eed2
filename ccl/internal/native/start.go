//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/signals"
)

// New makes this rank's end of a communicator. All ranks are here by then and have the id.
func (l *library) New(ctx context.Context, g engine.Group, id []byte) (engine.Engine, error) {
	n := len(id) / idBytes
	if n == 0 || len(id)%idBytes != 0 || n > 1 && l.t.CommInitRankScalable == nil {
		return nil, fmt.Errorf("%s: a unique id has %d bytes, this one %d", l.v.name, idBytes, len(id))
	}
	if err := l.v.runtime.Has(g.Device); err != nil {
		return nil, err
	}
	ids := make([]C.g_uid, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&ids[0])), len(id)), id)
	restore := signals.Guard() // the library loads plugins of its own now
	defer restore()
	version := C.int(l.version)
	if l.t.CommInitRankConfig == nil {
		version = 0
	}
	e := l.newEnd(g)
	return e.start(ctx, func() C.int { return C.gcclInit(e.c, &ids[0], C.int(n), version) })
}

const idBytes = int(unsafe.Sizeof(C.g_uid{}))

// From manyRanks on a communicator has an id for each ranksPerID: one root would have to answer all
// ranks one after the other.
const manyRanks, ranksPerID = 1024, 256

// IDs is for ncclCommInitRankScalable, which NCCL has since 2.23.
func (l *library) IDs(ranks int) int {
	if l.t.CommInitRankScalable == nil || ranks < l.many {
		return 1
	}
	return max(ranks/ranksPerID, 2)
}

// Split is not the library's: a communicator of a part of the ranks is made as any other, with an id
// of its own, since one that NCCL splits is written late, whatever has become of its parent meanwhile
// (ncclCommInitRankFunc, src/init.cc), and waits inside the parent.
func (e *end) Split(context.Context, engine.Group) (engine.Engine, error) {
	return nil, engine.ErrUnsupported
}

// Shrinks is nil where Abort has revoked the communicator and freed nothing, and the library would
// take it: an error of the network outlives ncclCommRevoke (proxyState->asyncResult, src/proxy.cc),
// and ncclCommShrink refuses such a communicator on this rank, while the others wait in it for this
// one.
func (e *end) Shrinks(ctx context.Context) error {
	switch {
	case e.lib.t.CommShrink == nil:
		return e.lib.lacks("ncclCommShrink", "2.27")
	case e.state.Load()&aborted == 0:
		return errUnfailed
	}
	select {
	case <-e.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.state.Load()&kept == 0 { // a call may still be inside, with mu, for ever
		return errAborted
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Load()&(closed|kept) != kept {
		return errClosed
	}
	if C.gcclAsync(e.aside.c) != C.GCCL_SUCCESS {
		return e.lib.failure(&e.aside.c.fault)
	}
	return nil
}

// Shrink makes a communicator without the ranks in lost, which need not call it, of one that was
// revoked: so no flag asks the library to end what is under way. Close of the parent waits until
// the library has come back.
func (e *end) Shrink(ctx context.Context, g engine.Group, lost []int) (engine.Engine, error) {
	ranks := make([]C.int, len(lost)+1) // the library sorts it
	for i, r := range lost {
		ranks[i] = C.int(r)
	}
	e.mu.Lock()
	if e.state.Load()&(closed|kept) != kept {
		e.mu.Unlock()
		return nil, errClosed
	}
	child := e.lib.newEnd(g)
	return child.start(ctx, func() C.int {
		defer e.mu.Unlock()
		return C.gcclShrink(e.c, child.c, C.int(e.lib.version), &ranks[0], C.int(len(lost)))
	})
}

// checkTick is how often a start asks what else has happened meanwhile.
const checkTick = time.Millisecond

// start makes the communicator with init, which waits for the other ranks, on a goroutine of its
// own. That goroutine owns the communicator until init has come back, since the library writes it
// at its end and frees nothing under itself; where ctx ends first, start returns, and the goroutine
// frees what it gets.
func (e *end) start(ctx context.Context, init func() C.int) (engine.Engine, error) {
	done := make(chan error, 1)
	go func() {
		err := e.result(init())
		e.aside.c.comm = e.c.comm
		if err == nil {
			err = ready(e)
		}
		done <- err
	}()
	tick := time.NewTicker(checkTick)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				drop(e)
				return nil, err
			}
			return e, nil
		case <-ctx.Done():
		case <-tick.C:
		}
		if err := stop(ctx, e.group.Check); err != nil {
			go func() {
				<-done
				drop(e)
			}()
			return nil, err
		}
	}
}

// drop frees an end that nobody gets, and which no call has been made of. It aborts and never
// revokes: the library keeps the communicator of a start that has failed, and commRevokeAsync
// (src/init.cc, NCCL 2.28.7 on) uses what such a one may not have yet.
func drop(e *end) {
	if e.c.comm != nil && e.state.Or(aborted)&aborted == 0 {
		go func() {
			defer close(e.ended)
			if e.leave() {
				e.abortNow()
			}
		}()
	}
	go e.Close() // which waits for the library
}

// ready makes what calls need of the device.
func ready(e *end) error {
	var scratch C.U
	if err := e.result(C.gcclAlloc(e.c, &scratch, 256)); err != nil {
		return err
	}
	*(*C.U)(unsafe.Pointer(&e.c.scratch)) = scratch
	return nil
}
