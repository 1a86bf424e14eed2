package ccl

import (
	"context"
	"fmt"
	"runtime/trace"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/op"
)

// The way of a call. A function or a method of Queue says what is asked for, args; describe checks
// that and makes it a call.Call, the one form that all engines and the control plane know; the
// recorder gives it its place in the order; an engine carries it out.
//
//	blocking       block:        callable, describe, wait for what is queued, recorder.begin, run
//	Split, Window  block:        the same; in run the function that makes it, in place of an engine
//	Queue, Group   Queue.issue:  describe, recorder.queue; the backlog waits for its turn: carryOut
//	Now            Queue.issue:  callNow, which is block
//	on a device    issueDevice:  describe, recorder.begin, submit: engine.Issue, at once or at the end of a Group

// args are what is asked for: the arguments of one call, whatever its kind.
type args struct {
	kind     call.Kind
	typ      Type
	op       Op
	root, to int // root or peer, or noRoot less a number; SendRecv's destination
	dst, src area
	dc, sc   []int
	later    bool // its error is given by a Work, and not by the call
}

// area is memory of a call.
type area struct {
	host unsafe.Pointer // nil on a device
	at   uintptr        // where it begins
	n    int            // elements
}

// areaOf is the memory of s.
func areaOf[T Element](s []T) area {
	p := unsafe.Pointer(unsafe.SliceData(s))
	return area{p, uintptr(p), len(s)}
}

// noRoot is the root of a call that has neither root nor peer. A number of Queue.Numbered is
// subtracted from it, so that it is compared, kept and sent as a root is.
const noRoot = -1

// block makes a call on the calling goroutine.
func (c *Comm) block(ctx context.Context, a *args) error {
	if err := callable(ctx, c, a.kind); err != nil {
		return err
	}
	k := &c.calling.call
	if _, err := describe(c, k, a, true); err != nil {
		return c.refuse(a.kind.String(), codeOf(err, ErrArgument), err)
	}
	if c.backlog.pending.Load() || c.devices.streams != nil {
		if !atomic.CompareAndSwapUint64(&c.backlog.issuing, 0, 1) {
			k.Forget()
			return c.refuse(a.kind.String(), ErrArgument, inUse(c))
		}
		err := c.drain(ctx)
		ordered.Store(&c.backlog.issuing, 0)
		if err != nil {
			k.Forget()
			return a.fails(endedBy(ctx, c, err, k.Record))
		}
	}
	r := c.rec.begin(k, nil, c.rec.clock.Now())
	f := c.run(ctx)
	k.Forget()
	state := Complete
	if f != nil {
		state = Failed
	}
	c.rec.end(r, state, c.rec.clock.Now())
	switch {
	case f == nil:
		return nil
	case isOwn(a.kind) && c.eng.Failure() == nil: // all ranks know that it comes to nothing
		return c.refused(a.kind.String(), f)
	}
	return a.fails(errorHere(ctx, c, f, r))
}

// fails is e as the call returns it.
func (a *args) fails(e *Error) error {
	if a.later {
		e.loss.meet()
		return e
	}
	return give(e)
}

// named is an operation that is no call in the order of all.
type named string

// String returns its name.
func (n named) String() string { return string(n) }

// callable is nil, or why nothing can be asked of c now: what every call looks at first, and
// whatever else c is asked for.
func callable(ctx context.Context, c *Comm, op fmt.Stringer) error {
	if ctx == nil {
		return noContext(ctx, c, op.String())
	}
	if c == nil || c.eng == nil { // isNil, which is in another file than a call's way
		return refuseNone(op.String())
	}
	c.calling.count++
	switch {
	case c.life.shut():
		return c.refuse(op.String(), ErrClosed, whyShut())
	case c.life.busy.Load() && c.usedElsewhere():
		return c.refuse(op.String(), ErrArgument, inUse(c))
	}
	return nil
}

// describe makes k the call that a asks for, on host memory or on that of c's device, unless
// something is wrong with it. What follows from kind, type, operator and root is kept where these
// are as they were in k, and the hash where the count is, too: most calls are like the one before.
// changed reports whether they are not. After an error k is no call.
func describe(c *Comm, k *call.Call, a *args, host bool) (changed bool, err error) {
	if k.Kind != a.kind || k.Type != op.Type(a.typ) || k.Op != op.Op(a.op) || int(k.Root) != a.root || k.To != a.to {
		if err := renew(c, k, a, host); err != nil {
			k.Kind = 0
			return true, err
		}
		changed = true
	}
	if host {
		k.Dst = unsafe.Slice((*byte)(a.dst.host), a.dst.n*k.Elem)
		k.Src = unsafe.Slice((*byte)(a.src.host), a.src.n*k.Elem)
	}
	k.DstAt, k.SrcAt, k.DstN, k.SrcN = a.dst.at, a.src.at, a.dst.n, a.src.n
	if a.dc != nil || k.DC != nil { // nearly never: they cost more than the rest
		k.DC, k.SC, changed = a.dc, a.sc, true
	}
	count := k.Count
	if !call.Checked && a.kind == call.AllReduce {
		k.Count = uint64(a.src.n)
	} else if err := op.Check(k, c.size, c.rank); err != nil {
		k.Kind = 0
		k.Forget()
		return true, err
	}
	if changed = changed || k.Count != count; changed {
		k.Seal()
	}
	k.Hash = k.Own
	return changed, nil
}

// renew makes k a call of a's kind, type, operator and root, unless c cannot make such calls.
func renew(c *Comm, k *call.Call, a *args, host bool) error {
	if err := supports(c, a.kind, op.Type(a.typ), op.Op(a.op), host); err != nil && !isOwn(a.kind) {
		return err
	}
	if int(int32(a.root)) != a.root { // before it is cut to what a record holds
		return op.NoRank(a.kind, a.root, c.size)
	}
	a.kernels(k, c.calling.factors)
	return nil
}

// isOwn reports whether no engine makes calls of kind k, but package ccl itself: Split, Window.
func isOwn(k call.Kind) bool { return k > call.Barrier }

// makeOwn makes a call of such a kind, which all ranks make, by f. It looks first whether the Comm
// is in a call: that of another goroutine must not find f.
func makeOwn(ctx context.Context, c *Comm, kind call.Kind, f func(k *call.Call) *call.Fault) error {
	if err := callable(ctx, c, kind); err != nil {
		return err
	}
	c.calling.makes = f
	defer func() { c.calling.makes = nil }()
	return c.block(ctx, &args{kind: kind, root: noRoot})
}

// run makes the call of c, which Close waits for.
func (c *Comm) run(ctx context.Context) *call.Fault {
	c.life.busy.Set()
	defer c.life.busy.Clear()
	if c.life.closed.Load() {
		return closedHere
	}
	if err := ctx.Err(); err != nil {
		return c.eng.Ended(call.CtxFault(err, c.rank, nil))
	}
	switch { // the rest is what carryOut does, with fewer functions in the way of a small call
	case c.watchers.some || trace.IsEnabled():
		return c.observe(ctx, c.calling.one[:])
	case isOwn(c.calling.call.Kind):
		return c.calling.makes(&c.calling.call)
	}
	if err := c.onHost.Run(ctx, c.calling.one[:]); err != nil {
		return faultOf(err)
	}
	return nil
}

// carryOut makes calls, as a group if there are several.
func (c *Comm) carryOut(ctx context.Context, calls []*call.Call) *call.Fault {
	if c.watchers.some || trace.IsEnabled() {
		return c.observe(ctx, calls)
	}
	return faultOf(c.onHost.Run(ctx, calls))
}

// drain waits until all that was issued before has ended, however, or c is closed. Its error is
// ctx's.
func (c *Comm) drain(ctx context.Context) error {
	if c.devices.streams != nil {
		if err := c.devices.drain(ctx, &c.life); err != nil {
			return err
		}
	}
	return c.backlog.drained(ctx)
}

// endedBy fails c, since a call's context ended while queued calls were waited for.
func endedBy(ctx context.Context, c *Comm, err error, r call.Record) *Error {
	f := closedHere
	if c.life.enter() {
		f = c.eng.Ended(call.CtxFault(err, c.rank, nil))
		c.life.busy.Clear()
	}
	r.Seq = c.rec.seq + 1
	return errorHere(ctx, c, f, &r)
}

// shut reports whether the Comm takes no calls: it is closed, or this process is a forked child. See whyShut.
func (l *life) shut() bool { return l.closed.Load() || *l.parent == 0 }

// enter begins a use of the Comm by the goroutine that calls on it, which ends with busy.Clear. It
// is false if the Comm is closed.
func (l *life) enter() bool {
	l.busy.Set()
	if l.closed.Load() {
		l.busy.Clear()
		return false
	}
	return true
}
