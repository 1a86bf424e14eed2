package ccl

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/backoff"
)

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
		if !calledBack() && !inject.Wrong("ccl.close") {
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

// failed makes f known to all that wait or ask. OnFailure has a goroutine of
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
