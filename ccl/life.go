package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/backoff"
)

// The lifetime of a Comm. One rule holds for Close against everything else:
//
//  1. A blocking call, Split, Shrink, MakeSlice and a queued call that runs use the Comm's memory between enter and
//     busy.Clear (backlog.begin and end for queued calls), and only there. Close frees the memory
//     when nobody uses it. Whatever
//     comes later finds the Comm closed, returns ErrClosed and touches nothing.
//  2. Close makes the users leave. Queued calls have PeerTimeout to end. A blocking call or a Split
//     on another goroutine
//     fails at once, with ErrClosed, as the Comm does; a Shrink comes to nothing. A user that still
//     does not leave, such
//     as an OnCall that blocks, keeps the memory: Close returns, and the memory is freed when that user has left.
//  3. A failure ends what is queued: a queued call that has not begun never begins, and its Work
//     has the failure, though
//     its HostStream may be busy with something else.
//  4. Nobody uses the Comm while it waits for OnFailure. So OnFailure may Close the Comm, and Close does not wait for
//     OnFailure.
//  5. No wait for OnFailure outlives the context of the call, nor Options.Timeout.

// life is how far a Comm is in its lifetime, and what uses it.
type life struct {
	ready     atomic.Bool  // it has an engine
	busy      ordered.Flag // a call is under way, on the goroutine that uses the Comm
	runs      ordered.Flag // queued calls are, on a stream's goroutine
	closed    atomic.Bool
	parent    *uint32     // 0 in a forked child: see proc.Parent
	found     atomic.Bool // a failure is being told
	failure   atomic.Pointer[Error]
	told      atomic.Bool   // OnFailure has been called, or there is none
	done      chan struct{} // closed once OnFailure has returned
	over      chan struct{} // closed once Close has returned
	lost      *loss         // that of failure
	unwinding bool          // the Comm was made within a panic, or while its goroutine ended
	letters   letters       // its messages beside its calls, which end with it
}

// closeGrace is how long Close waits at least for calls to leave that it has failed.
const closeGrace = 500 * time.Millisecond

// Close leaves c: it waits for queued calls, at most PeerTimeout, and frees what c
// holds. It is not collective; a peer that calls on gets ErrClosed naming this rank.
// What this rank has sent reaches its peers, whenever they receive it, and whatever other Comms are
// open when the process ends: those of other hosts, once all ranks of its host have closed c, in
// jobs of up to 256 hosts. Each Comm of NewComm, Join, Split and Shrink is closed by itself; where
// one is open at the end of the process, its peers get ErrRankLost there.
// From NCCL 2.31 and RCCL 2.31.2 on it is cheapest when the ranks of a host close at the
// same time: one that closes alone waits 0.1 s for them, and then for what it has issued
// to the device, at most PeerTimeout. Where c has ranks on other hosts it waits for those of its
// own host as long as PeerTimeout, since the library may still have something to send.
// It may be called from any goroutine, and from OnFailure: a call, Split or Shrink under
// way on another goroutine ends with ErrClosed, unless it has just succeeded. Where another
// Close is under way, Close waits for it, at most PeerTimeout, unless it is called by OnFailure,
// OnDone or OnCall, or in a function of HostStream.Do. In a forked child it does nothing.
//
// Its error is what has failed without the program being told: a queued call or a message of which no
// Wait, Test or OnDone, nor another call, has returned the error, a message that was sent and that
// nobody has received, or a mismatch. What has been returned before is not returned again.
func (c *Comm) Close() error {
	switch {
	case c.isNil() || proc.Forked():
		return nil
	case !c.life.closed.CompareAndSwap(false, true):
		if !calledBack() {
			plane.AwaitLived(c.eng.Control().Site.Job, c.opt.patience(), c.life.over)
		}
		return nil
	}
	defer close(c.life.over)
	if cause := unwinding(); cause != nil && !c.life.unwinding {
		// else the others would learn only that this rank has closed c
		c.Abort(cause)
	}
	limit := c.opt.patience()
	if c.reserve != nil {
		c.reserve.leave(c, errOver)
	}
	until := time.Now().Add(limit)
	ordered.Heavy() // a use that has not seen that c is closed is seen
	control := c.eng.Control()
	control.Fate.Interrupt()
	control.WakeCall()
	c.backlog.mu.Lock()
	c.backlog.turn.ring() // a call that waits for queued ones gives up
	c.backlog.mu.Unlock()
	if c.life.quiet(&c.backlog, until) {
		return release(c, until)
	}
	if c.life.failure.Load() == nil {
		c.eng.Ended(&call.Fault{Code: call.Closed, Peer: c.Rank(), Err: errors.New("closed with calls in progress")})
	}
	if grace := time.Now().Add(closeGrace); grace.After(until) {
		until = grace
	}
	if c.life.quiet(&c.backlog, until) {
		return release(c, until)
	}
	go func() {
		c.life.quiet(&c.backlog, time.Time{})
		release(c, until)
	}()
	c.life.lost.meet() // what uses it still has not returned
	return take(untoldOf(c)...)
}

// quiet waits until nobody uses the Comm and nothing is queued in b, at most until then, if that is not zero. For a
// blocking call on another goroutine it does not wait, unless the Comm has failed.
func (l *life) quiet(b *backlog, until time.Time) bool {
	wait := backoff.Sleep{First: time.Microsecond, Most: 10 * time.Millisecond}
	for {
		b.mu.Lock()
		queued := b.ran != b.issued || b.executing
		b.mu.Unlock()
		if !queued && !l.busy.Load() {
			return true
		}
		if !until.IsZero() && (!queued && l.failure.Load() == nil || time.Now().After(until)) {
			return false
		}
		wait.Next()
	}
}

// release frees what c holds, and returns what has failed without being told. Nobody uses c. The
// functions of its own stream may take until then.
func release(c *Comm, until time.Time) error {
	c.backlog.mu.Lock()
	own, rejected := c.backlog.own, c.backlog.ends.reject
	if t := c.backlog.overdue.timer; t != nil { // which would keep c, and the memory of its host, until it looks again
		t.Stop()
	}
	c.backlog.mu.Unlock()
	var functions []*Error
	if own != nil {
		functions = own.end(time.Until(until))
	}
	if c.life.failure.Load() == nil { // what a rank that waited for nobody has not heard of yet
		if rejected != nil { // it is being decided
			c.eng.Ended(rejection(c, rejected))
		} else if f := c.eng.Odd(); f != nil {
			c.eng.Ended(f)
		}
	}
	if err := closeLibrary(c); err != nil {
		c.opt.Log.Warn("the library keeps the Comm's resources", "error", err)
	} else {
		c.lib.held.end()
	}
	if err := c.lib.letGo(c.life.failure.Load() != nil); err != nil {
		c.opt.Log.Warn("what the library shares with others is not let go", "error", err)
	}
	if c.life.failure.Load() == nil { // else it was written then
		reporter{c}.writeTrace("exit", nil)
	}
	if f := c.eng.Failure(); f != nil { // its messages have failed, though OnFailure may not have returned
		c.life.letters.end(c, f, false)
	}
	c.life.letters.end(c, closedHere, true)
	c.eng.Close() // which has been done where it is the library
	return take(append(untoldOf(c), functions...)...)
}

// failed makes f known to everybody who waits or asks. OnFailure has a goroutine of
// its own: the one that found the failure may be needed for what the callback does.
func failed(c *Comm, f *call.Fault) {
	if !c.life.found.CompareAndSwap(false, true) {
		return
	}
	e := errorOf(c, f)
	c.life.failure.Store(e)
	reporter{c}.blame(e)
	c.lib.abandon(c, e)
	go func() { // as for calls, after OnFailure
		c.life.awaitTold(context.Background(), c.opt.Timeout)
		c.life.letters.end(c, f, false)
	}()
	go func() {
		defer close(c.life.done)
		defer c.life.told.Store(true) // where there is no OnFailure, or the report ends this goroutine
		c.backlog.mu.Lock()
		c.backlog.endAll()
		c.backlog.mu.Unlock()
		reporter{c}.failure(e)
		tellFailed(c)
		c.life.told.Store(true)
		if c.opt.OnFailure != nil {
			callBack(c.opt.OnFailure, e)
		}
	}()
}

// toldGrace is how long a call whose context has ended still waits for OnFailure, which it should not precede.
const toldGrace = time.Second

// awaitTold waits until OnFailure has returned, within the bounds of rule 5, where limit is
// Options.Timeout. The Comm has failed, or is about to.
func (l *life) awaitTold(ctx context.Context, limit time.Duration) {
	select {
	case <-l.done:
		return
	default:
	}
	grace := time.NewTimer(toldGrace)
	defer grace.Stop()
	ctx, end := limited(ctx, limit)
	defer end()
	select {
	case <-l.done:
	case <-ctx.Done():
		select {
		case <-l.done:
		case <-grace.C:
		}
	}
}

// closedHere is what a call gets that comes after Close.
var closedHere = &call.Fault{Code: call.Closed, Peer: -1}

// errorIn is why the call in r failed: c's failure, once OnFailure has returned, or that c is closed. f is what the
// engine said, nil if nothing. Whoever calls it does not use c.
func (c *Comm) errorIn(ctx context.Context, f *call.Fault, r *call.Record) *Error {
	if f == closedHere && c.life.failure.Load() == nil {
		return c.refuse(Kind(r.Kind).String(), ErrClosed, nil)
	}
	c.life.awaitTold(ctx, c.opt.Timeout)
	return failureIn(c, f, r)
}

// failureIn is c's failure as the call in r returns it.
func failureIn(c *Comm, f *call.Fault, r *call.Record) *Error {
	failure := c.life.failure.Load()
	if failure == nil { // the goroutine that found it has not come to telling
		failure = errorOf(c, cmp.Or(f, c.eng.Failure()))
	}
	in := *failure
	c.named(&in) // SetName may have come since
	in.Op = Kind(r.Kind).String()
	in.Mine = callOf(r)
	in.Mine.Caller = c.rec.callers.of(r.Seq)
	if f := c.eng.Failure(); f != nil && f.Code == call.Mismatch {
		if f.Mine != nil { // often an earlier call, which this one has found to differ
			in.Mine = callOf(f.Mine)
			in.Mine.Caller = c.rec.callers.of(in.Mine.Seq)
			in.earlier = in.Mine.Seq != r.Seq
		}
		if f.Theirs != nil {
			in.Peer, in.Theirs = f.Peer, callOf(f.Theirs)
		}
		if in.others = f.Apart; in.others {
			in.Err = fmt.Errorf("call #%d is %s there, and %s at %s", f.Theirs.Seq, in.Theirs.describe(),
				callOf(f.Other).describe(), in.rank(f.OtherPeer))
		}
	}
	return &in
}
