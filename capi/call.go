//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include "goccl.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// mostCalls is how many calls one goccl_call makes at most: more is a number that somebody has
// forgotten to set.
const mostCalls = 1 << 20

// asked are the calls of one goccl_call.
type asked struct {
	calls []args
	one   [1]args // most often all of them
	limit time.Duration
}

// readCalls looks at what is asked for: what is wrong with it on all ranks alike, or on this one, is an
// error before the Comm hears of it, which would then fail, since the other ranks may wait for this one.
func (a *asked) readCalls(calls *C.goccl_args, n C.int32_t, timeout C.int64_t, rank, size int) error {
	switch {
	case n < 1 || n > mostCalls:
		return wrong("goccl_call of %d calls", int32(n))
	case calls == nil:
		return wrong("the calls are NULL")
	case timeout < 0:
		return wrong("the timeout is %v; 0 is none", time.Duration(timeout))
	}
	a.calls, a.limit = a.one[:], time.Duration(timeout)
	if n > 1 {
		a.calls = make([]args, n)
	}
	for i := range a.calls {
		if err := a.calls[i].read(&unsafe.Slice(calls, int(n))[i], rank, size); err != nil {
			return wrong("call %d: %w", i, err)
		}
	}
	return nil
}

// enter has this thread be the one that makes or queues calls of c, until it sets issues to false.
func (c *comm) enter() error {
	if !c.issues.CompareAndSwap(false, true) {
		return wrong("another thread is making or queuing calls on this Comm: goccl_split, or one thread that makes its calls")
	}
	return nil
}

// makeCalls makes calls and waits for them: on this thread, unless calls are queued, whose
// callbacks may want to make some before this one has ended.
func makeCalls(h C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t) error {
	c, err := find(h)
	if err != nil {
		return err
	}
	if err := c.mayWait(); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.of.Load() == nil || c.queued.Load() > 0 {
		c.mu.Unlock()
		ended := make(chan error, 1)
		if err := c.queue(calls, n, timeout, func(err error) { ended <- err }); err != nil {
			return err
		}
		return <-ended
	}
	defer c.issues.Store(false)
	defer c.mu.Unlock()
	var a asked
	if err := a.readCalls(calls, n, timeout, c.rank(), c.size()); err != nil {
		return err
	}
	w, err := c.issue(ccl.Now, &a)
	if err != nil {
		return err
	}
	return w.Wait(background)
}

// rollCall is goccl_monitored_barrier.
func rollCall(h C.goccl_comm, timeout C.int64_t) error {
	c, err := ready(h)
	if err != nil {
		return err
	}
	if timeout < 0 {
		return wrong("the timeout is %v; 0 is none", time.Duration(timeout))
	}
	if err := c.alone(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	ctx, cancel := within(timeout)
	defer cancel()
	return ccl.MonitoredBarrier(ctx, c.of.Load())
}

// queueCalls queues calls that call back when they have ended.
func queueCalls(h C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done C.goccl_done,
	ctx C.uintptr_t) error {
	c, err := find(h)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	return c.queue(calls, n, timeout, func(err error) { tellOf(c, done, ctx, err) })
}

// queue queues calls, and has done called when they have ended. If it returns an error, it does
// not. It ends what enter began.
func (c *comm) queue(calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done func(error)) error {
	w, later, err := c.put(calls, n, timeout, done)
	if err == nil && !later {
		c.owe(w, done) // without the lock: done may run at once, and may make calls
	}
	return err
}

// put issues calls, or keeps them for later.
func (c *comm) put(calls *C.goccl_args, n C.int32_t, timeout C.int64_t,
	done func(error)) (w ccl.Work, later bool, err error) {
	c.mu.Lock()
	defer c.issues.Store(false)
	defer c.mu.Unlock()
	if c.why != nil {
		return w, false, c.tellWhy()
	}
	a := new(asked)
	if err := a.readCalls(calls, n, timeout, c.rank(), c.size()); err != nil {
		return w, false, err
	}
	if c.later != nil {
		c.later.calls = append(c.later.calls, pending{a, done})
		return w, true, nil
	}
	if w, err = c.issue(nil, a); err == nil {
		c.queued.Add(1)
	}
	return w, false, err
}

// owe has done called when w has ended.
func (c *comm) owe(w ccl.Work, done func(error)) {
	w.OnDone(func(err error) {
		defer c.queued.Add(-1)
		done(err)
	})
}

// pending are calls that wait for their Comm to be opened.
type pending struct {
	*asked
	done func(error)
}

// begin ends the opening of c, which is now of, or has failed, and issues what was called before.
// It reports whether c was closed meanwhile.
func (c *comm) begin(of *ccl.Comm, why error) (closed bool) {
	c.mu.Lock()
	calls := c.later.calls
	if closed = c.later.closed; closed && why == nil {
		why = &ccl.Error{Code: ccl.ErrClosed, Op: "goccl", Rank: -1, Peer: -1}
	}
	c.later, c.why, c.told = nil, why, closed || len(calls) > 0
	if why == nil {
		c.of.Store(of)
	}
	works, errs := make([]ccl.Work, len(calls)), make([]error, len(calls))
	for i := range calls {
		if errs[i] = why; why == nil {
			works[i], errs[i] = c.issue(nil, calls[i].asked)
		}
		if errs[i] == nil {
			c.queued.Add(1)
		}
	}
	c.mu.Unlock()
	for i := range calls {
		if errs[i] != nil {
			calls[i].done(errs[i])
		} else {
			c.owe(works[i], calls[i].done)
		}
	}
	return closed
}

// on is the queue on s, ccl.Now or nil. It has no place, since the line of Go that makes a call is
// always the same; and is made once, as that allocates.
func (c *comm) on(s ccl.Stream) ccl.Queue {
	q := &c.own
	if s != nil {
		q = &c.now
	}
	if *q == (ccl.Queue{}) {
		*q = c.of.Load().On(s).From("")
	}
	return *q
}

// issue makes calls on a stream.
func (c *comm) issue(s ccl.Stream, a *asked) (ccl.Work, error) {
	for i := range a.calls {
		k := &a.calls[i]
		if err := c.of.Load().Supports(ccl.Kind(k.kind), ccl.Type(k.typ), c.operator(k.op, k.factor)); err != nil {
			return ccl.Work{}, err
		}
	}
	q := c.on(s)
	if a.limit > 0 {
		q = q.Within(a.limit)
	}
	if len(a.calls) == 1 {
		return c.one(q, &a.calls[0])
	}
	return q.Group(func(g ccl.Queue) error {
		for i := range a.calls {
			if _, err := c.one(g, &a.calls[i]); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// one issues a call on q.
func (c *comm) one(q ccl.Queue, k *args) (ccl.Work, error) {
	if k.place != "" {
		q = q.From(k.place)
	}
	dst, src := view(k.typ, k.dst, k.dstN), ccl.InPlace()
	if !k.inPlace {
		src = view(k.typ, k.src, k.srcN)
	}
	root, op := k.root, c.operator(k.op, k.factor)
	switch k.kind {
	case C.GOCCL_ALL_REDUCE:
		return q.AllReduce(dst, src, op), nil
	case C.GOCCL_REDUCE:
		return q.Reduce(dst, src, op, root), nil
	case C.GOCCL_REDUCE_SCATTER:
		return q.ReduceScatter(dst, src, op), nil
	case C.GOCCL_REDUCE_SCATTER_V:
		return q.ReduceScatterV(dst, src, k.sc, op), nil
	case C.GOCCL_BROADCAST:
		return q.Broadcast(dst, root), nil
	case C.GOCCL_ALL_GATHER:
		return q.AllGather(dst, src), nil
	case C.GOCCL_ALL_GATHER_V:
		return q.AllGatherV(dst, k.dc, src), nil
	case C.GOCCL_GATHER:
		return q.Gather(dst, src, root), nil
	case C.GOCCL_GATHER_V:
		return q.GatherV(dst, k.dc, src, root), nil
	case C.GOCCL_SCATTER:
		return q.Scatter(dst, src, root), nil
	case C.GOCCL_SCATTER_V:
		return q.ScatterV(dst, src, k.sc, root), nil
	case C.GOCCL_ALL_TO_ALL:
		return q.AllToAll(dst, src), nil
	case C.GOCCL_ALL_TO_ALL_V:
		return q.AllToAllV(dst, k.dc, src, k.sc), nil
	case C.GOCCL_SEND:
		return q.Send(src, root), nil
	case C.GOCCL_RECV:
		return q.Recv(dst, root), nil
	case C.GOCCL_SEND_RECV:
		return q.SendRecv(dst, root, src, k.to), nil
	case C.GOCCL_BARRIER:
		return q.Barrier(), nil
	}
	return ccl.Work{}, wrong("there is no kind %d", k.kind)
}

// operator is an operator that there is.
func (c *comm) operator(o C.int32_t, factor float64) ccl.Op {
	if o == C.GOCCL_MULSUM {
		return c.of.Load().Scaled(factor)
	}
	return ccl.Op(o)
}

// supports is why such calls cannot be made, or nil.
func (c *comm) supports(kind, typ, op C.int32_t) error {
	switch {
	case !isKind(kind) || typ < 0 || typ > C.GOCCL_COMPLEX128:
		return wrong("there is no kind %d of type %d", int32(kind), int32(typ))
	case !isOp(op):
		return wrong("there is no operator %d", int32(op))
	}
	if op == C.GOCCL_MULSUM { // which makes an operator
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	return c.of.Load().Supports(ccl.Kind(kind), ccl.Type(typ), c.operator(op, 1))
}
