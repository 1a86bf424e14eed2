package ccl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/proc"
)

// push hands a group to the stream.
func (q *Queue) push(g *group) Work {
	c := q.c
	c.mu.Lock()
	if c.closed.Load() { // since it was looked at: Close may have found nothing queued
		w := q.shut(&args{kind: g.kind()})
		g.reject = w.err
		c.mu.Unlock()
		return w
	}
	c.queued++
	g.ticket = c.queued
	if c.tail == nil {
		c.head = g
	} else {
		c.tail.next = g
	}
	c.tail = g
	c.pending.Store(true)
	if g.reject != nil && c.reject == nil {
		c.reject, c.rejectAt = g.reject, g.ticket
	}
	if c.failure.Load() != nil {
		c.endQueue()
	} else if !c.overdue.watching {
		c.watchHead()
	}
	c.mu.Unlock()
	w := Work{at: c, seq: g.ticket}
	if q.now {
		c.runQueued(g)
		g.free()
		return w
	}
	if q.s.push(task{group: g}) == 0 {
		// The stream is closed: nobody would run it. It keeps its place as rejected.
		e := c.named(&Error{Code: ErrClosed, Op: "On", Rank: c.Rank(), Peer: -1, Err: errStreamClosed})
		c.mu.Lock()
		if c.reject == nil {
			c.reject, c.rejectAt = e, g.ticket
		}
		g.reject, g.calls = e, nil
		c.mu.Unlock()
		go c.runQueued(g)
		return Work{err: e}
	}
	return w // g may have run, and serve another
}

// runQueued makes the calls of g when their turn has come, on a stream's goroutine.
func (c *Comm) runQueued(g *group) {
	if !c.beginGroup(g) {
		return
	}
	var f *call.Fault
	done := false
	defer func() {
		if p := recover(); p != nil {
			panic(p) // which ends the process: nothing is said of that in its name
		}
		if !done { // OnCall has ended this goroutine, with runtime.Goexit
			f = &call.Fault{Code: call.Backend, Peer: c.Rank(), Err: errors.New("a function that the call ran, such as OnCall, ended its goroutine")}
			c.eng.Fail(f)
		}
		c.runs.Clear()
		c.endGroup(g, f)
	}()
	c.runs.Set()
	if g.reject != nil {
		// Peers will wait for a call that never comes.
		f = &call.Fault{Code: call.Mismatch, Peer: c.Rank(), Err: fmt.Errorf("a queued call was rejected: %w", brief{g.reject})}
		c.eng.Fail(f)
	} else {
		f = c.carryOut(context.Background(), g.calls)
	}
	done = true
}

// beginGroup waits for g's turn. It is false where c has failed before.
func (c *Comm) beginGroup(g *group) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn.wait(&c.mu, nil, func() bool { return c.ran == g.ticket-1 || g.ended })
	if c.failure.Load() != nil {
		c.endQueue()
	}
	if g.ended {
		if g.failure = g.reject; g.reject == nil {
			e := *c.failure.Load()
			e.Op = g.kind().String()
			g.failure = &e
		}
		return false
	}
	c.executing = true
	for _, k := range g.calls {
		c.mark(k, Running)
	}
	return true
}

// endGroup notes how g has ended.
func (c *Comm) endGroup(g *group, f *call.Fault) {
	state := Complete
	if f != nil {
		state = Failed
	}
	c.mu.Lock()
	if f != nil && c.failedAt == 0 {
		c.fails(g)
	}
	c.executing = false
	c.pop(state)
	if c.failure.Load() != nil {
		c.endQueue()
	}
	c.turn.ring()
	if g.failure = g.reject; g.reject == nil && f != nil {
		g.failure = c.errorOf(f)
	}
	c.mu.Unlock()
}

// pop ends the first queued group. c.mu is held.
func (c *Comm) pop(s State) {
	g := c.head
	if g.reject != nil {
		s = Rejected
	}
	for _, k := range g.calls {
		c.mark(k, s)
	}
	g.ended = true
	if c.head = g.next; c.head == nil {
		c.tail = nil
	}
	g.next = nil
	c.ran = g.ticket
	c.pending.Store(c.ran != c.queued)
}

// fails notes that g is the first queued group that has failed. c.mu is held.
func (c *Comm) fails(g *group) {
	c.failedAt, c.failedCall = g.ticket, call.Record{Kind: call.Kind(KindGroup), Root: -1}
	if len(g.calls) > 0 {
		c.failedCall = g.calls[0].Record
	}
}

// endQueue ends what is queued, since c has failed; not what is under way, which ends by itself. c.mu is held.
func (c *Comm) endQueue() {
	if c.executing {
		return
	}
	if c.head != nil && c.failedAt == 0 {
		c.fails(c.head)
	}
	for c.head != nil {
		c.pop(Failed)
	}
	c.turn.ring()
}

// overdue looks whether the next queued call comes to run within Options.Timeout: once it runs, the engine looks.
type overdue struct {
	watching bool
	timer    *time.Timer
	ticket   uint64 // of the next call at the last look
	looks    int    // that it has been the next
}

// overdueLooks is how often one looks within Options.Timeout.
const overdueLooks = 8

// watchHead looks after the next queued call. c.mu is held.
func (c *Comm) watchHead() {
	o := &c.overdue
	if c.opt.Timeout <= 0 {
		return
	}
	o.watching, o.ticket, o.looks = true, 0, 0
	if step := c.opt.Timeout / overdueLooks; o.timer == nil {
		o.timer = time.AfterFunc(step, c.lookAtHead)
	} else {
		o.timer.Reset(step)
	}
}

func (c *Comm) lookAtHead() {
	o := &c.overdue
	c.mu.Lock()
	switch {
	case c.head == nil:
		o.watching = false
		c.mu.Unlock()
		return
	case c.executing || o.ticket != c.head.ticket:
		o.ticket, o.looks = c.head.ticket, 0
	default:
		o.looks++
	}
	over := o.looks == overdueLooks
	o.timer.Reset(c.opt.Timeout / overdueLooks)
	c.mu.Unlock()
	if over {
		c.eng.Fail(&call.Fault{Code: call.Timeout, Peer: c.Rank(), Own: true,
			Err: fmt.Errorf("a queued call has waited for %v behind other work of its HostStream", c.opt.Timeout)})
	}
}

// mark writes a call's state into the flight recorder. c.mu is held.
func (c *Comm) mark(k *call.Call, s State) {
	r := &c.ring[k.Seq%ringCalls]
	if r.Seq != k.Seq {
		return
	}
	r.State = uint8(s)
	if s == Running {
		r.Start = c.eng.Now()
	} else {
		r.End = c.eng.Now()
	}
}

// until waits until ok, which is called with c.mu held, or ctx ends.
func (c *Comm) until(ctx context.Context, ok func() bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.turn.wait(&c.mu, ctx.Done(), ok) {
		return ctx.Err()
	}
	return nil
}

// wait waits for the queued call with that ticket.
func (c *Comm) wait(ctx context.Context, ticket uint64) error {
	if proc.Forked() {
		return c.Err()
	}
	var ended how
	err := c.until(ctx, func() bool {
		ended = c.resultOf(ticket)
		return ended.done
	})
	switch {
	case err != nil:
		return waitError(err)
	case ended.reject != nil:
		return ended.reject
	case ended.failed:
		return c.errorIn(ctx, nil, &ended.call)
	}
	return nil
}

// test reports whether the queued call with that ticket has ended.
func (c *Comm) test(ticket uint64) (bool, error) {
	if proc.Forked() {
		return true, c.Err()
	}
	c.mu.Lock()
	ended := c.resultOf(ticket)
	c.mu.Unlock()
	switch {
	case ended.reject != nil:
		return true, ended.reject
	case ended.failed && !c.telling.Load(): // OnFailure comes first
		return false, nil
	case ended.failed:
		return true, c.failureIn(nil, &ended.call)
	}
	return ended.done, nil
}

// how says how a queued call ended, if it has.
type how struct {
	done, failed bool
	reject       *Error
	call         call.Record // the first that failed
}

// resultOf is how the queued call with that ticket ended. c.mu is held.
func (c *Comm) resultOf(ticket uint64) how {
	switch {
	case c.reject != nil && ticket >= c.rejectAt:
		return how{done: true, reject: c.reject}
	case c.failedAt != 0 && ticket >= c.failedAt:
		return how{done: true, failed: true, call: c.failedCall}
	}
	return how{done: c.ran >= ticket}
}

// drain waits until all queued calls have ended, however, or c is closed. Its error is ctx's.
func (c *Comm) drain(ctx context.Context) error {
	if err := c.drainDevice(ctx); err != nil {
		return err
	}
	return c.until(ctx, func() bool { return c.ran == c.queued || c.closed.Load() })
}
