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
	"github.com/goccl/goccl/internal/op"
)

// mostCalls is how many calls one goccl_call makes at most: more is a number that somebody has
// forgotten to set.
const mostCalls = 1 << 20

// asked are the calls of one goccl_call, in Go's memory where they outlive it.
type asked struct {
	calls  []C.goccl_args
	places []string
	counts [][2][]int
	limit  time.Duration
}

// readCalls looks at what is asked for. keep copies what C may use again once goccl_call has
// returned.
func readCalls(calls *C.goccl_args, n C.int32_t, timeout C.int64_t, size int, keep bool) (a asked, err error) {
	switch {
	case n < 1 || n > mostCalls:
		return a, wrong("goccl_call of %d calls", int32(n))
	case calls == nil:
		return a, wrong("the calls are NULL")
	case timeout < 0:
		return a, wrong("the timeout is %v; 0 is none", time.Duration(timeout))
	}
	a.calls, a.limit = unsafe.Slice(calls, int(n)), time.Duration(timeout)
	if keep {
		a.calls = append([]C.goccl_args{}, a.calls...)
	}
	for i := range a.calls {
		k := &a.calls[i]
		if k.dst_n > 1<<56 || k.src_n > 1<<56 || k.dst_n > 0 && none(&k.dst) || k.src_n > 0 && k.flags&C.GOCCL_IN_PLACE == 0 && none(&k.src) {
			return a, wrong("call %d: dst is %d elements at %#x, src %d at %#x", i, uint64(k.dst_n), address(&k.dst), uint64(k.src_n), address(&k.src))
		}
		if k.place != nil || a.places != nil {
			if a.places == nil {
				a.places = make([]string, n)
			}
			a.places[i] = text(k.place)
		}
		if keep && (k.dst_counts != nil || k.src_counts != nil) {
			if a.counts == nil {
				a.counts = make([][2][]int, n)
			}
			a.counts[i] = [2][]int{countsOf(k.dst_counts, size), countsOf(k.src_counts, size)}
		}
	}
	return a, nil
}

// countsOf are counts of C's.
func countsOf(p *C.int64_t, n int) []int {
	if p == nil {
		return nil
	}
	r := make([]int, n)
	for i, x := range unsafe.Slice((*int64)(unsafe.Pointer(p)), n) {
		r[i] = int(x)
		if int64(r[i]) != x { // of a machine with words of 32 bits
			r[i] = -1
		}
	}
	return r
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
	a, err := readCalls(calls, n, timeout, c.size(), false)
	if err != nil {
		return err
	}
	w, err := c.issue(ccl.Now, &a)
	if err != nil {
		return err
	}
	return w.Wait(background)
}

// queueCalls queues calls that call back when they have ended.
func queueCalls(h C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done C.goccl_done, ctx C.uintptr_t) error {
	c, err := find(h)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	return c.queue(calls, n, timeout, func(err error) { tell(done, ctx, err) })
}

// queue queues calls, and has done called when they have ended. If it returns an error, it does
// not. It ends what enter began.
func (c *comm) queue(calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done func(error)) error {
	leave := func() {
		c.mu.Unlock()
		c.issues.Store(false)
	}
	c.mu.Lock()
	if c.why != nil {
		defer leave()
		return c.why
	}
	a, err := readCalls(calls, n, timeout, c.size(), c.later != nil)
	if err != nil || c.later != nil {
		if err == nil {
			c.later.calls = append(c.later.calls, pending{a, done})
		}
		leave()
		return err
	}
	w, err := c.issue(nil, &a)
	if err == nil {
		c.queued.Add(1)
	}
	leave() // before done, which may run at once, and may make calls
	if err == nil {
		c.owe(w, done)
	}
	return err
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
	asked
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
	c.later, c.why = nil, why
	if why == nil {
		c.of.Store(of)
	}
	works, errs := make([]ccl.Work, len(calls)), make([]error, len(calls))
	for i := range calls {
		if errs[i] = why; why == nil {
			works[i], errs[i] = c.issue(nil, &calls[i].asked)
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

// check is what is wrong with call i on all ranks alike, or on this one. The Comm would refuse it, too,
// and then fail, since the other ranks may wait for this one in it.
func (c *comm) check(i int, k *C.goccl_args) error {
	n, kind := c.of.Load().Size(), op.Kind(k.kind)
	switch {
	case k.kind < C.GOCCL_ALL_REDUCE || k.kind > C.GOCCL_BARRIER:
		return wrong("call %d: there is no kind %d", i, int32(k.kind))
	case k._type < 0 || k._type > C.GOCCL_COMPLEX128 || k._type == C.GOCCL_NONE && !kind.Dataless():
		return wrong("call %d: there is no type %d", i, int32(k._type))
	case (kind.Rooted() || kind.Pairwise()) && (k.root < 0 || int(k.root) >= n):
		return wrong("call %d: %w", i, op.NoRank(kind, int(k.root), n))
	case kind == op.SendRecv && (k.to < 0 || int(k.to) >= n):
		return wrong("call %d: %w", i, op.NoRank(kind, int(k.to), n))
	}
	o, err := c.operator(k)
	if err != nil {
		return err
	}
	return c.of.Load().Supports(ccl.Kind(k.kind), ccl.Type(k._type), o)
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
		if err := c.check(i, &a.calls[i]); err != nil {
			return ccl.Work{}, err
		}
	}
	q := c.on(s)
	if a.limit > 0 {
		q = q.Within(a.limit)
	}
	if len(a.calls) == 1 {
		return c.one(q, a, 0)
	}
	return q.Group(func(g ccl.Queue) error {
		for i := range a.calls {
			if _, err := c.one(g, a, i); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// one issues call i of a on q.
func (c *comm) one(q ccl.Queue, a *asked, i int) (ccl.Work, error) {
	k := &a.calls[i]
	if a.places != nil && a.places[i] != "" {
		q = q.From(a.places[i])
	}
	dst, src := view(k._type, &k.dst, k.dst_n), ccl.InPlace()
	if k.flags&C.GOCCL_IN_PLACE == 0 {
		src = view(k._type, &k.src, k.src_n)
	}
	dc, sc := c.countsOf(a, i)
	root := int(k.root)
	op, err := c.operator(k)
	if err != nil {
		return ccl.Work{}, err
	}
	switch k.kind {
	case C.GOCCL_ALL_REDUCE:
		return q.AllReduce(dst, src, op), nil
	case C.GOCCL_REDUCE:
		return q.Reduce(dst, src, op, root), nil
	case C.GOCCL_REDUCE_SCATTER:
		return q.ReduceScatter(dst, src, op), nil
	case C.GOCCL_REDUCE_SCATTER_V:
		return q.ReduceScatterV(dst, src, sc, op), nil
	case C.GOCCL_BROADCAST:
		return q.Broadcast(dst, root), nil
	case C.GOCCL_ALL_GATHER:
		return q.AllGather(dst, src), nil
	case C.GOCCL_ALL_GATHER_V:
		return q.AllGatherV(dst, dc, src), nil
	case C.GOCCL_GATHER:
		return q.Gather(dst, src, root), nil
	case C.GOCCL_GATHER_V:
		return q.GatherV(dst, dc, src, root), nil
	case C.GOCCL_SCATTER:
		return q.Scatter(dst, src, root), nil
	case C.GOCCL_SCATTER_V:
		return q.ScatterV(dst, src, sc, root), nil
	case C.GOCCL_ALL_TO_ALL:
		return q.AllToAll(dst, src), nil
	case C.GOCCL_ALL_TO_ALL_V:
		return q.AllToAllV(dst, dc, src, sc), nil
	case C.GOCCL_SEND:
		return q.Send(src, root), nil
	case C.GOCCL_RECV:
		return q.Recv(dst, root), nil
	case C.GOCCL_SEND_RECV:
		return q.SendRecv(dst, root, src, int(k.to)), nil
	case C.GOCCL_BARRIER:
		return q.Barrier(), nil
	}
	return ccl.Work{}, wrong("call %d: there is no kind %d", i, int32(k.kind))
}

// countsOf are the counts by rank of call i.
func (c *comm) countsOf(a *asked, i int) (dc, sc []int) {
	if a.counts != nil {
		return a.counts[i][0], a.counts[i][1]
	}
	k := &a.calls[i]
	if k.dst_counts == nil && k.src_counts == nil {
		return nil, nil
	}
	return countsOf(k.dst_counts, c.size()), countsOf(k.src_counts, c.size())
}

// operator is the operator of a call.
func (c *comm) operator(k *C.goccl_args) (ccl.Op, error) {
	switch {
	case k.op == C.GOCCL_MULSUM:
		return c.of.Load().Scaled(float64(k.factor)), nil
	case k.op < 0 || k.op > C.GOCCL_BXOR:
		return 0, wrong("there is no operator %d", int32(k.op))
	}
	return ccl.Op(k.op), nil
}

// supports is why such calls cannot be made, or nil.
func (c *comm) supports(kind, typ, op C.int32_t) error {
	if kind < C.GOCCL_ALL_REDUCE || kind > C.GOCCL_BARRIER || typ < 0 || typ > C.GOCCL_COMPLEX128 {
		return wrong("there is no kind %d of type %d", int32(kind), int32(typ))
	}
	if op == C.GOCCL_MULSUM { // which makes an operator
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	o, err := c.operator(&C.goccl_args{op: op, factor: 1})
	if err != nil {
		return err
	}
	return c.of.Load().Supports(ccl.Kind(kind), ccl.Type(typ), o)
}
