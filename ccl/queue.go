package ccl

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/op"
)

// Queue issues calls in order without waiting for them. Queues are values; all
// queues of a Comm share its one order of calls, messages included: a Send behind a Recv
// waits for it, though they are on two Streams. So one goroutine issues the calls of a Comm, on
// whatever Queues, or several take turns, in the same order on all ranks, with a mutex or a
// channel between them. One that issues while another is doing so gets ErrArgument, as for any
// call that the Queue rejects, and so it fails the Comm. Goroutines that take turns by chance are
// not all found: their calls may be matched with those of others, and only the race detector tells.
// What helps is Split, or one goroutine that owns the Queue. Messages that must not wait for each other,
// as those of a pipeline, which go both ways, have a Comm for each link and direction, made
// by Split. That serves a device, too, where a communicator has one order as well. The zero
// Queue rejects every call.
//
// A queued call fails with its Comm, at once, though its HostStream may be busy: what has
// not begun never begins. Options.Timeout counts for it from when it is the next of its
// Comm, whatever then keeps its HostStream from it. A call on a device is issued once
// those queued before it on the host have ended. With NCCL and RCCL the first call of a kind
// waits, as it is issued, until all ranks have issued it, since the library may connect ranks
// in it. So does the first of that kind in each range of sizes from one power of two to the next.
type Queue struct {
	c     *Comm
	s     *HostStream
	dev   *deviceStream // in its place
	now   bool          // in place of both: the stream is Now
	err   *Error        // why this queue takes nothing
	group *group        // being collected, if any
	use   uint64        // of group

	number int     // of Numbered; 0: none
	with   *wishes // of Within and From
}

// On returns the queue of c on s. If s is nil, that is c's own HostStream. The queue of a nil Comm
// rejects every call. All Queues of a Comm are for one goroutine at a time: where several have calls
// to make, give each a Comm, by Split, or have one goroutine that owns the Queue.
func (c *Comm) On(s Stream) Queue {
	if c.isNil() {
		return Queue{}
	}
	c.calling.count++
	switch s := s.(type) {
	case *HostStream:
		if s != nil {
			return Queue{c: c, s: s}
		}
	case nil:
	case nowStream:
		return Queue{c: c, now: true}
	default:
		return deviceQueue(c, s)
	}
	c.backlog.mu.Lock()
	defer c.backlog.mu.Unlock()
	if c.backlog.own == nil {
		c.backlog.own = NewHostStream()
	}
	return Queue{c: c, s: c.backlog.own}
}

// Numbered returns q for calls about the nth of several alike things, such as the layers of a
// model. Ranks compare the number as they compare the count, so a rank that gathers layer 3 while
// another gathers layer 4 gets ErrMismatch instead of half of each. Calls with a root or a peer
// take no number. Numbers count from 1; 0 is none.
func (q Queue) Numbered(n int) Queue {
	if q.number = n; q.c != nil && q.err == nil && (n < 0 || n >= math.MaxInt32) {
		q.err = &Error{Code: ErrArgument, Op: "Numbered", Rank: q.c.Rank(), Peer: -1,
			Err: fmt.Errorf("%d is no number of a call; those are 0 to %d", n, math.MaxInt32-1)}
	}
	return q
}

// AllReduce issues [AllReduce].
func (q Queue) AllReduce(dst, src Buf, op Op) Work {
	return q.issue(&args{kind: call.AllReduce, op: op, root: -1}, &dst, &src)
}

// Reduce issues [Reduce].
func (q Queue) Reduce(dst, src Buf, op Op, root int) Work {
	return q.issue(&args{kind: call.Reduce, op: op, root: root}, &dst, &src)
}

// ReduceScatter issues [ReduceScatter].
func (q Queue) ReduceScatter(dst, src Buf, op Op) Work {
	return q.issue(&args{kind: call.ReduceScatter, op: op, root: -1}, &dst, &src)
}

// ReduceScatterV issues [ReduceScatterV].
func (q Queue) ReduceScatterV(dst, src Buf, counts []int, op Op) Work {
	return q.issue(&args{kind: call.ReduceScatterV, op: op, root: -1, dc: counts}, &dst, &src)
}

// Broadcast issues [Broadcast].
func (q Queue) Broadcast(buf Buf, root int) Work {
	return q.issue(&args{kind: call.Broadcast, root: root}, &buf, &buf)
}

// AllGather issues [AllGather].
func (q Queue) AllGather(dst, src Buf) Work {
	return q.issue(&args{kind: call.AllGather, root: -1}, &dst, &src)
}

// AllGatherV issues [AllGatherV].
func (q Queue) AllGatherV(dst Buf, counts []int, src Buf) Work {
	return q.issue(&args{kind: call.AllGatherV, root: -1, dc: counts}, &dst, &src)
}

// Gather issues [Gather].
func (q Queue) Gather(dst, src Buf, root int) Work {
	return q.issue(&args{kind: call.Gather, root: root}, &dst, &src)
}

// GatherV issues [GatherV].
func (q Queue) GatherV(dst Buf, counts []int, src Buf, root int) Work {
	return q.issue(&args{kind: call.GatherV, root: root, dc: counts}, &dst, &src)
}

// Scatter issues [Scatter].
func (q Queue) Scatter(dst, src Buf, root int) Work {
	return q.issue(&args{kind: call.Scatter, root: root}, &dst, &src)
}

// ScatterV issues [ScatterV].
func (q Queue) ScatterV(dst, src Buf, counts []int, root int) Work {
	return q.issue(&args{kind: call.ScatterV, root: root, dc: counts}, &dst, &src)
}

// AllToAll issues [AllToAll].
func (q Queue) AllToAll(dst, src Buf) Work {
	return q.issue(&args{kind: call.AllToAll, root: -1}, &dst, &src)
}

// AllToAllV issues [AllToAllV].
func (q Queue) AllToAllV(dst Buf, dc []int, src Buf, sc []int) Work {
	return q.issue(&args{kind: call.AllToAllV, root: -1, dc: dc, sc: sc}, &dst, &src)
}

// Send issues [Send].
func (q Queue) Send(src Buf, peer int) Work {
	return q.issue(&args{kind: call.Send, root: peer}, &Buf{typ: src.typ}, &src)
}

// Recv issues [Recv].
func (q Queue) Recv(dst Buf, peer int) Work {
	return q.issue(&args{kind: call.Recv, root: peer}, &dst, &Buf{typ: dst.typ})
}

// SendRecv issues [SendRecv].
func (q Queue) SendRecv(dst Buf, from int, src Buf, to int) Work {
	return q.issue(&args{kind: call.SendRecv, root: from, to: to}, &dst, &src)
}

// Barrier issues [Barrier].
func (q Queue) Barrier() Work {
	return q.issue(&args{kind: call.Barrier, root: -1}, &Buf{}, &Buf{})
}

// Group issues the calls f makes on g as one, as ncclGroupStart and End: a send and
// the receive that crosses it do not block each other, and small calls of one kind
// are fused into one exchange. So its calls must not depend on each other. The exchange that
// this saves is worth more than the Group between hosts, and less between ranks of one host,
// where two small calls by themselves are quicker. On the CPU all
// messages of a Group move first, wherever they stand in it, and its collectives follow in
// their order. So all ranks must put the same collectives into a Group, while each may have
// other messages there; and a rank whose peers do not group them must not put a message
// behind a collective: the peers would be in the collective while it waits in the message.
// Works of g are valid once Group returns. An error from f issues nothing and counts as a
// rejected call.
func (q Queue) Group(f func(g Queue) error) Work {
	switch {
	case q.c == nil:
		return zeroQueue(call.Group)
	case q.group != nil && q.late():
		return q.tooLate(call.Group)
	case f == nil:
		return q.rejected(call.Group, errNilFunction)
	case q.group != nil: // a group in a group is part of it, as in NCCL
		if err := f(q); err != nil {
			return q.rejected(call.Group, err)
		}
		return Work{at: q.group, seq: q.use}
	}
	q.c.calling.count++
	if q.err != nil || q.c.life.shut() {
		return q.rejected(call.Group, nil)
	}
	if q.dev != nil {
		return q.groupDevice(f)
	}
	g := q.c.backlog.newGroup()
	inner := q
	inner.group, inner.use = g, g.use
	if err := f(inner); err != nil && g.reject == nil {
		g.reject = q.c.refuse("Group", ErrArgument, err)
	}
	g.over = true
	if !atomic.CompareAndSwapUint64(&q.c.backlog.issuing, 0, 1) {
		g.reject = cmp.Or(g.reject, q.c.refuse("Group", ErrArgument, inUse(q.c)))
		return q.push(g)
	}
	defer ordered.Store(&q.c.backlog.issuing, 0)
	return q.push(g)
}

// issue checks a call and puts it in its place. Meanwhile its goroutine holds issuing, and any
// other that issues is refused. Two that begin one after the other are not found. So the first,
// second, fourth, eighth issue and so on gives way while it holds that: where several goroutines
// use the Queue, one of them comes then.
func (q *Queue) issue(a *args, dst, src *Buf) Work {
	c, atOnce := q.c, q.now && q.group == nil // block looks for itself whether c is in use
	if c == nil {
		return zeroQueue(a.kind)
	}
	c.calling.count++
	switch {
	case q.err != nil || c.life.shut():
		return q.rejected(a.kind, nil)
	case q.group != nil && q.late():
		return q.tooLate(a.kind)
	case atOnce:
	case !atomic.CompareAndSwapUint64(&c.backlog.issuing, 0, 1):
		return q.rejected(a.kind, inUse(c))
	default:
		defer ordered.Store(&c.backlog.issuing, 0)
		if c.backlog.issues++; c.backlog.issues&(c.backlog.issues-1) == 0 {
			runtime.Gosched()
		}
	}
	if err := q.resolve(a, dst, src); err != nil {
		return q.rejected(a.kind, err)
	}
	switch {
	case q.dev != nil:
		return q.issueDevice(a)
	case atOnce:
		return q.callNow(a)
	case c.usedElsewhere():
		return q.rejected(a.kind, inUse(c))
	}
	g := c.backlog.groupOf(q)
	k := g.add(a)
	if _, err := describe(c, k, a, true); err != nil {
		g.drop(q.group == nil)
		return q.rejected(a.kind, err)
	}
	k.Queued = true
	c.backlog.mu.Lock()
	c.rec.queue(k)
	c.rec.callers.queued(k.Seq, q.with.at())
	if q.group != nil {
		c.backlog.mu.Unlock()
		return Work{at: g, seq: q.use}
	}
	return q.place(g)
}

// push hands a group to the stream.
func (q *Queue) push(g *group) Work {
	q.c.backlog.mu.Lock()
	return q.place(g)
}

// place is push. The backlog is locked, until it returns.
func (q *Queue) place(g *group) Work {
	c := q.c
	if c.life.closed.Load() { // since it was looked at: Close may have found nothing queued
		w := q.shut(g.kind())
		g.reject = w.err
		c.backlog.mu.Unlock()
		return w
	}
	if c.backlog.add(g); q.with != nil {
		g.limit = q.with.limit
	}
	if c.life.failure.Load() != nil {
		c.backlog.endAll()
	} else if !c.backlog.overdue.watching {
		c.backlog.watchHead()
	}
	c.backlog.mu.Unlock()
	w := Work{at: &c.backlog, seq: g.ticket}
	if q.now {
		c.backlog.run(g)
		g.free()
		return w
	}
	if _, err := q.s.push(task{group: g}); err != nil {
		// The stream does not take it, and nobody would run it. It keeps its place as rejected.
		e := c.refuse("On", streamCode(err), err)
		c.backlog.mu.Lock()
		c.backlog.rejected(g.ticket, e)
		g.reject, g.calls = e, nil
		c.backlog.mu.Unlock()
		go c.backlog.run(g)
		return Work{err: e}
	}
	return w // g may have run, and serve another
}

// resolve finds the memory of a call, which buffers describe, and gives it q's number.
func (q *Queue) resolve(a *args, dst, src *Buf) (err error) {
	if q.number != 0 {
		a.numbered(q.number)
	}
	if a.typ = dst.typ; a.typ == TypeNone {
		a.typ = src.typ
	}
	if dst.count < 0 || src.count < 0 {
		var own Buf
		if dst, src, err = inPlaceOf(q.c, a, dst, src, &own); err != nil {
			return err
		}
	}
	if dst.typ != src.typ && dst.typ != TypeNone && src.typ != TypeNone {
		return fmt.Errorf("dst is %s and src is %s", dst.typ, src.typ)
	}
	if q.dev != nil {
		if a.dst, err = dst.deviceArea(q.c.lib); err != nil {
			return fmt.Errorf("dst: %w", err)
		}
		if a.src = a.dst; src != dst {
			if a.src, err = src.deviceArea(q.c.lib); err != nil {
				return fmt.Errorf("src: %w", err)
			}
		}
		return nil
	}
	if dst.mem != nil || src.mem != nil {
		return errors.New("device memory needs a queue on a stream of the device")
	}
	a.dst, a.src = dst.area(), src.area()
	return nil
}

// numbered gives a number to a call without a root. A root that is wrong stays as it is.
func (a *args) numbered(number int) {
	if !a.kind.Rooted() && !a.kind.Pairwise() {
		a.root -= number
	}
}

// inPlaceOf are the buffers of a call whose input is already in dst, unless src is not InPlace:
// then one of the two is wrong. own is room for one, so that nothing is allocated.
func inPlaceOf(c *Comm, a *args, dst, src, own *Buf) (to, from *Buf, err error) {
	switch {
	case dst.count < 0:
		return nil, nil, dst.wrong()
	case src.count != inPlace:
		return nil, nil, src.wrong()
	}
	switch a.kind {
	case call.AllReduce, call.Reduce, call.AllToAll, call.AllToAllV:
		return dst, dst, nil
	}
	*own, err = ownPart(c, a, dst)
	if a.kind.Reduces() { // the whole vector is the input
		return own, dst, err
	}
	return dst, own, err
}

// ownPart is this rank's part of whole, in which a call has both its input and its result.
func ownPart(c *Comm, a *args, whole *Buf) (part Buf, err error) {
	switch a.kind {
	case call.AllGather, call.Gather, call.ReduceScatter:
		n := whole.count / c.size
		if part = whole.From(c.rank*n, (c.rank+1)*n); n*c.size != whole.count {
			part.count = -1
		}
	case call.AllGatherV, call.GatherV, call.ReduceScatterV:
		total, at, err := op.Total("counts", a.dc, c.size, c.rank)
		if err != nil {
			return part, err
		}
		if part = whole.From(at, at+a.dc[c.rank]); part.count < 0 {
			return part, fmt.Errorf("dst has %d elements, but counts add up to %d", whole.count, total)
		}
	default:
		return part, fmt.Errorf("%s cannot take InPlace as src", a.kind)
	}
	if part.count < 0 {
		return part, errors.New("dst does not divide among the ranks")
	}
	return part, nil
}

// rejected gives a refused call its place in the order.
func (q *Queue) rejected(k call.Kind, err error) Work {
	e := q.err
	switch {
	case proc.Forked():
		return q.shut(k)
	case e != nil:
	case err == nil:
		return q.shut(k)
	default:
		e = q.c.refuse(k.String(), codeOf(err, ErrArgument), err)
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
	w := q.push(&group{c: q.c, reject: e})
	w.err = e
	return w
}

// shut refuses a call on a Comm that is closed. It takes no place in the order, but what Do runs later on its stream
// would rely on it. In a forked child the stream is a copy without its goroutine, and its lock may be held for ever.
func (q *Queue) shut(k call.Kind) Work {
	e := q.c.refuse(k.String(), ErrClosed, whyShut())
	if q.s != nil && !proc.Forked() {
		_, _ = q.s.push(task{err: e})
	}
	return Work{err: e}
}

// late reports whether the Group that q is the Queue of has returned. A call asks for it, so q is not copied.
func (q *Queue) late() bool { return q.group.over || q.group.use != q.use }

// tooLate refuses a call through the Queue of a Group that has returned: the group is on its way without it.
func (q *Queue) tooLate(k call.Kind) Work {
	q.group = nil
	return q.rejected(k, errGroupOver)
}

// zeroQueue is the Work of a call on the zero Queue.
func zeroQueue(k call.Kind) Work {
	return Work{err: &Error{Code: ErrArgument, Op: k.String(), Rank: -1, Peer: -1, Err: errZeroQueue}}
}

var errZeroQueue = errors.New("the Queue belongs to no Comm; call On of a Comm that is not nil")

// errGroupOver is why a call is refused that comes through the Queue of a Group which has returned.
var errGroupOver = errors.New("the Group has returned; its Queue is valid only inside its function")

// rejectedBy fails the Comm because of e, a rejected call: a queue on a device has no place that could be
// kept for it, and peers will wait for a call that never comes.
func (q *Queue) rejectedBy(e *Error) Work {
	c := q.c
	c.backlog.mu.Lock()
	c.backlog.rejected(c.backlog.issued+1, e)
	c.backlog.mu.Unlock()
	c.eng.Fail(rejection(c, e))
	return Work{err: e}
}
