package ccl

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/engine"
)

// Queue issues calls in order without waiting for them. Queues are values; all
// queues of a Comm share its one order of calls.
type Queue struct {
	c     *Comm
	s     *HostStream
	dev   *deviceStream // in its place
	err   *Error        // why this queue takes nothing
	group *group        // being collected, if any
}

// On returns the queue of c on s; nil is c's own HostStream.
func (c *Comm) On(s Stream) Queue {
	c.calls++
	switch s := s.(type) {
	case *HostStream:
		if s != nil {
			return Queue{c: c, s: s}
		}
	case nil:
	default:
		return c.deviceQueue(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		c.own = NewHostStream()
	}
	return Queue{c: c, s: c.own}
}

// group is what is issued as one: a call, or those of a Group.
type group struct {
	ticket  uint64 // its place among the queued calls of its Comm
	calls   []*cpu.Call
	one     [1]*cpu.Call
	reject  *Error
	foreign []engine.Call // on a device
}

// AllReduce issues [AllReduce].
func (q Queue) AllReduce(dst, src Buf, op Op) Work {
	return q.issue(&args{kind: KindAllReduce, op: op, root: -1}, &dst, &src)
}

// Reduce issues [Reduce].
func (q Queue) Reduce(dst, src Buf, op Op, root int) Work {
	return q.issue(&args{kind: KindReduce, op: op, root: root}, &dst, &src)
}

// ReduceScatter issues [ReduceScatter].
func (q Queue) ReduceScatter(dst, src Buf, op Op) Work {
	return q.issue(&args{kind: KindReduceScatter, op: op, root: -1}, &dst, &src)
}

// ReduceScatterV issues [ReduceScatterV].
func (q Queue) ReduceScatterV(dst, src Buf, counts []int, op Op) Work {
	return q.issue(&args{kind: KindReduceScatterV, op: op, root: -1, dc: counts}, &dst, &src)
}

// Broadcast issues [Broadcast].
func (q Queue) Broadcast(buf Buf, root int) Work {
	return q.issue(&args{kind: KindBroadcast, root: root}, &buf, &buf)
}

// AllGather issues [AllGather].
func (q Queue) AllGather(dst, src Buf) Work {
	return q.issue(&args{kind: KindAllGather, root: -1}, &dst, &src)
}

// AllGatherV issues [AllGatherV].
func (q Queue) AllGatherV(dst Buf, counts []int, src Buf) Work {
	return q.issue(&args{kind: KindAllGatherV, root: -1, dc: counts}, &dst, &src)
}

// Gather issues [Gather].
func (q Queue) Gather(dst, src Buf, root int) Work {
	return q.issue(&args{kind: KindGather, root: root}, &dst, &src)
}

// GatherV issues [GatherV].
func (q Queue) GatherV(dst Buf, counts []int, src Buf, root int) Work {
	return q.issue(&args{kind: KindGatherV, root: root, dc: counts}, &dst, &src)
}

// Scatter issues [Scatter].
func (q Queue) Scatter(dst, src Buf, root int) Work {
	return q.issue(&args{kind: KindScatter, root: root}, &dst, &src)
}

// ScatterV issues [ScatterV].
func (q Queue) ScatterV(dst, src Buf, counts []int, root int) Work {
	return q.issue(&args{kind: KindScatterV, root: root, dc: counts}, &dst, &src)
}

// AllToAll issues [AllToAll].
func (q Queue) AllToAll(dst, src Buf) Work {
	return q.issue(&args{kind: KindAllToAll, root: -1}, &dst, &src)
}

// AllToAllV issues [AllToAllV].
func (q Queue) AllToAllV(dst Buf, dc []int, src Buf, sc []int) Work {
	return q.issue(&args{kind: KindAllToAllV, root: -1, dc: dc, sc: sc}, &dst, &src)
}

// Send issues [Send].
func (q Queue) Send(src Buf, peer int) Work {
	return q.issue(&args{kind: KindSend, root: peer}, &Buf{typ: src.typ}, &src)
}

// Recv issues [Recv].
func (q Queue) Recv(dst Buf, peer int) Work {
	return q.issue(&args{kind: KindRecv, root: peer}, &dst, &Buf{typ: dst.typ})
}

// SendRecv issues [SendRecv].
func (q Queue) SendRecv(dst Buf, from int, src Buf, to int) Work {
	return q.issue(&args{kind: KindSendRecv, root: from, to: to}, &dst, &src)
}

// Barrier issues [Barrier].
func (q Queue) Barrier() Work {
	return q.issue(&args{kind: KindBarrier, root: -1}, &Buf{}, &Buf{})
}

// Group issues the calls f makes on g as one, as ncclGroupStart and End: a send and
// the receive that crosses it do not block each other, and small calls of one kind
// are fused into one exchange. So its calls must not depend on each other. Works of g are valid once Group returns. An error from f
// issues nothing and counts as a rejected call.
func (q Queue) Group(f func(g Queue) error) Work {
	if q.group != nil { // a group in a group is part of it, as in NCCL
		if err := f(q); err != nil {
			return q.rejected(&args{kind: KindGroup}, err)
		}
		return Work{at: q.c, seq: q.group.ticket}
	}
	q.c.calls++
	if q.err != nil || q.c.shut() {
		return q.rejected(&args{kind: KindGroup}, nil)
	}
	if q.dev != nil {
		return q.groupDevice(f)
	}
	q.c.mu.Lock()
	g := &group{ticket: q.c.queued + 1}
	q.c.mu.Unlock()
	inner := q
	inner.group = g
	if err := f(inner); err != nil && g.reject == nil {
		g.reject = q.c.refuse(&args{kind: KindGroup}, ErrArgument, err)
	}
	return q.push(g)
}

// issue checks a call and puts it in its place.
func (q Queue) issue(a *args, dst, src *Buf) Work {
	c := q.c
	c.calls++
	if q.err != nil || c.shut() {
		return q.rejected(a, nil)
	}
	if err := q.resolve(a, dst, src); err != nil {
		return q.rejected(a, err)
	}
	if q.dev != nil {
		return q.issueDevice(a)
	}
	count, err := c.check(a)
	if err != nil {
		return q.rejected(a, err)
	}
	k := new(cpu.Call)
	c.mu.Lock()
	c.seq++
	c.fill(k, a, c.seq, count)
	k.Queued = true
	c.ring[c.seq%ringCalls], c.issuers[c.seq%ringCalls] = k.Record, nil
	c.mu.Unlock()
	if q.group != nil {
		q.group.calls = append(q.group.calls, k)
		return Work{at: c, seq: q.group.ticket}
	}
	g := &group{one: [1]*cpu.Call{k}}
	g.calls = g.one[:]
	return q.push(g)
}

// resolve turns buffers into the slices a blocking call would have been given.
func (q Queue) resolve(a *args, dst, src *Buf) error {
	if dst.inPlace() {
		return errors.New("InPlace is for src")
	}
	if dst.count < 0 || src.count < 0 {
		return errors.New("Buf.From was out of bounds")
	}
	a.typ = dst.typ
	if a.typ == TypeNone {
		a.typ = src.typ
	}
	if src.inPlace() {
		me := q.c.Rank()
		switch a.kind {
		case KindAllGather, KindGather:
			if n := q.c.Size(); dst.count%n == 0 {
				part := dst.From(me*(dst.count/n), (me+1)*(dst.count/n))
				src = &part
			}
		case KindAllGatherV, KindGatherV:
			if _, at, err := sum("counts", a.dc, q.c.Size(), me); err != nil {
				return err
			} else {
				part := dst.From(at, at+a.dc[me])
				src = &part
			}
		case KindReduceScatter:
			if n := q.c.Size(); dst.count%n == 0 {
				part := dst.From(me*(dst.count/n), (me+1)*(dst.count/n))
				src, dst = dst, &part
			}
		case KindReduceScatterV:
			if _, at, err := sum("counts", a.dc, q.c.Size(), me); err != nil {
				return err
			} else {
				part := dst.From(at, at+a.dc[me])
				src, dst = dst, &part
			}
		case KindAllReduce, KindReduce, KindAllToAll, KindAllToAllV:
			src = dst
		default:
			return fmt.Errorf("%s cannot take InPlace as src", a.kind)
		}
		if src.inPlace() || src.count < 0 || dst.count < 0 {
			return errors.New("dst does not divide among the ranks")
		}
	}
	if dst.typ != TypeNone && src.typ != TypeNone && dst.typ != src.typ {
		return fmt.Errorf("dst is %s and src is %s", dst.typ, src.typ)
	}
	if q.dev != nil {
		var err error
		if a.onDst, err = dst.on(q.c.lib); err != nil {
			return fmt.Errorf("dst: %w", err)
		}
		if a.onSrc = a.onDst; src == dst {
			return nil
		}
		if a.onSrc, err = src.on(q.c.lib); err != nil {
			return fmt.Errorf("src: %w", err)
		}
		return nil
	}
	if dst.mem != nil || src.mem != nil {
		return errors.New("device memory needs a queue on a stream of the device")
	}
	a.dst, a.src = dst.bytes(), src.bytes()
	if a.kind == KindBroadcast {
		a.src = a.dst
	}
	return nil
}

// rejected gives a refused call its place in the order.
func (q Queue) rejected(a *args, err error) Work {
	e := q.err
	switch {
	case e != nil:
	case err == nil:
		e = q.c.refuse(a, ErrClosed, whyShut())
		return Work{err: e}
	default:
		e = q.c.refuse(a, codeOf(err), err)
	}
	if q.group != nil {
		if q.group.reject == nil {
			q.group.reject = e
		}
		return Work{err: e}
	}
	if q.s == nil {
		return q.rejectedBy(e)
	}
	w := q.push(&group{reject: e})
	w.err = e
	return w
}

// rejectedBy fails the Comm because of e, a rejected call: a queue on a device has no place that could be
// kept for it, and peers will wait for a call that never comes.
func (q Queue) rejectedBy(e *Error) Work {
	c := q.c
	c.mu.Lock()
	if c.reject == nil {
		c.reject, c.rejectAt = e, c.queued+1
	}
	c.mu.Unlock()
	c.eng.Fail(&cpu.Fault{Code: cpu.Mismatch, Peer: c.Rank(), Err: fmt.Errorf("a queued call was rejected: %w", e)})
	return Work{err: e}
}

// push hands a group to the stream.
func (q Queue) push(g *group) Work {
	c := q.c
	c.mu.Lock()
	c.queued++
	g.ticket = c.queued
	c.pending.Store(true)
	if g.reject != nil && c.reject == nil {
		c.reject, c.rejectAt = g.reject, g.ticket
	}
	c.mu.Unlock()
	if _, ok := q.s.push(task{c: c, group: g}); !ok {
		// The stream is closed: nobody would run it. It keeps its place as rejected.
		e := &Error{Code: ErrClosed, Op: "On", Rank: c.Rank(), Peer: -1, Err: errStreamClosed}
		c.mu.Lock()
		if c.reject == nil {
			c.reject, c.rejectAt = e, g.ticket
		}
		c.mu.Unlock()
		g.reject, g.calls = e, nil
		go c.runQueued(g)
		return Work{err: e}
	}
	return Work{at: c, seq: g.ticket}
}

// runQueued makes the calls of g when their turn has come, on a stream's goroutine.
func (c *Comm) runQueued(g *group) {
	c.mu.Lock()
	for c.ran != g.ticket-1 {
		c.turn.Wait()
	}
	for _, k := range g.calls {
		c.mark(k, Running)
	}
	c.mu.Unlock()
	var f *cpu.Fault
	switch {
	case g.reject != nil:
		// Peers will wait for a call that never comes.
		f = &cpu.Fault{Code: cpu.Mismatch, Peer: c.Rank(), Err: fmt.Errorf("a queued call was rejected: %w", g.reject)}
		c.eng.Fail(f)
	default:
		c.busy.Set()
		f = c.carryOut(context.Background(), g.calls)
		c.busy.Clear()
	}
	state := Complete
	if f != nil {
		state = Failed
	}
	if g.reject != nil {
		state = Rejected
	}
	if f != nil {
		<-c.done
	}
	c.mu.Lock()
	for _, k := range g.calls {
		c.mark(k, state)
	}
	if f != nil && c.failedAt == 0 {
		c.failedAt, c.failedCall = g.ticket, cpu.Record{Kind: cpu.Kind(KindGroup), Root: -1}
		if len(g.calls) > 0 {
			c.failedCall = g.calls[0].Record
		}
	}
	c.ran = g.ticket
	c.pending.Store(c.ran != c.queued)
	c.turn.Broadcast()
	c.mu.Unlock()
}

// mark writes a call's state into the flight recorder. c.mu is held.
func (c *Comm) mark(k *cpu.Call, s State) {
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

// until waits on c.turn until ok, which is called with c.mu held, or ctx ends.
func (c *Comm) until(ctx context.Context, ok func() bool) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.turn.Broadcast()
		})
		defer stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.turn.Wait()
	}
	return nil
}

// wait waits for the queued call with that ticket.
func (c *Comm) wait(ctx context.Context, ticket uint64) error {
	if cpu.Forked() {
		return c.Err()
	}
	var result error
	err := c.until(ctx, func() (done bool) {
		done, result = c.resultOf(ticket)
		return done
	})
	if err != nil {
		return waitError(err)
	}
	return result
}

// test reports whether the queued call with that ticket has ended.
func (c *Comm) test(ticket uint64) (bool, error) {
	if cpu.Forked() {
		return true, c.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resultOf(ticket)
}

// resultOf is how the queued call with that ticket ended, if it has. c.mu is held.
func (c *Comm) resultOf(ticket uint64) (bool, error) {
	if c.reject != nil && ticket >= c.rejectAt {
		return true, c.reject
	}
	if c.failedAt != 0 && ticket >= c.failedAt {
		return true, c.errorIn(&c.failedCall)
	}
	return c.ran >= ticket, nil
}

// drain waits until all queued calls have ended, however. Its error is ctx's.
func (c *Comm) drain(ctx context.Context) error {
	if err := c.drainDevice(ctx); err != nil {
		return err
	}
	return c.until(ctx, func() bool { return c.ran == c.queued })
}
