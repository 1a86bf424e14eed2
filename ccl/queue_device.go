package ccl

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/engine"
)

// extent is memory by address and length, in bytes and in elements, wherever it lies.
type extent struct {
	at       uintptr
	n, count int
}

// on is the extent of b, device memory that must belong to the Comm's device.
func (b *Buf) on(l *library) (extent, error) {
	if b.mem == nil {
		if b.typ == TypeNone || b.host == nil && b.count == 0 {
			return extent{}, nil
		}
		return extent{}, errors.New("host memory where device memory is needed: copy it to the device, or issue the call on a HostStream")
	}
	at, ok := b.mem.Ptr()
	if !ok {
		return extent{}, errors.New("the device memory was freed")
	}
	if !identical(b.mem, l.known) {
		if err := l.owns(b.mem); err != nil {
			return extent{}, err
		}
		l.known = b.mem
	}
	e := b.typ.Size()
	return extent{at + uintptr(b.first*e), b.count * e, b.count}, nil
}

// owns is an error of memory that is not of the Comm's device.
func (l *library) owns(m deviceMemory) error {
	if p, ok := m.(interface{ Platform() string }); ok && l.backend.Platform != "" {
		if name := p.Platform(); name != l.backend.Platform {
			return fmt.Errorf("the memory is from package %s, but the Comm's backend %s needs memory from package %s", name, l.backend.Name, l.backend.Platform)
		}
	}
	if d := m.Device(); d != l.device {
		return fmt.Errorf("the memory is on device %d, the Comm on device %d", d, l.device)
	}
	return nil
}

// identical reports whether a and b are one value, not just equal ones, whose type need not be comparable.
func identical(a, b deviceMemory) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// deviceQueue is the queue of c on a stream of its device.
func deviceQueue(c *Comm, s Stream) Queue {
	refuse := func(code Code, err error) Queue {
		return Queue{c: c, err: &Error{Code: code, Op: "On", Rank: c.Rank(), Peer: -1, Err: err}}
	}
	switch _, ok := s.Handle(); {
	case c.lib == nil || c.lib.device < 0:
		return refuse(ErrUnsupported, fmt.Errorf("the %s backend runs on a HostStream, not on a %T", c.Backend(), s))
	case !ok:
		return refuse(ErrArgument, fmt.Errorf("the %T is closed", s))
	}
	if on, ok := s.(interface{ Device() int }); ok && on.Device() != c.lib.device {
		return refuse(ErrArgument, fmt.Errorf("the %T is on device %d, the Comm on device %d", s, on.Device(), c.lib.device))
	}
	return Queue{c: c, dev: c.devices.stream(c, s)}
}

// issueDevice hands a call, whose arguments are resolved, to the library. It allocates nothing.
func (q *Queue) issueDevice(a *args) Work {
	if q.c.backlog.pending.Load() {
		q.awaitHost()
	}
	if !q.c.life.enter() {
		return q.shut(a)
	}
	w := q.issueEntered(a)
	q.c.life.leave()
	return w
}

// awaitHost waits until the calls that were queued before on the host have ended: a Comm's calls have one order, and these have their
// place in it only when they run.
func (q *Queue) awaitHost() {
	c := q.c
	c.backlog.until(context.Background(), func() bool {
		return c.backlog.ran == c.backlog.issued || c.life.closed.Load() || c.life.failure.Load() != nil
	})
}

// issueEntered is issueDevice of one who uses the Comm.
func (q *Queue) issueEntered(a *args) Work {
	c, l := q.c, q.c.lib
	if c.life.failure.Load() != nil {
		return q.failed(a)
	}
	k := &l.call
	if Kind(k.Kind) != a.kind || Type(k.Type) != a.typ || Op(k.Op) != a.op { // the last call was supported
		if a.op >= firstScaled && a.kind.reduces() {
			if _, err := c.calling.factors.of(a.typ, a.op); err != nil {
				return q.rejected(a, err)
			}
		}
		if err := l.Supports(engine.Kind(a.kind), engine.Type(a.typ), engineOp(a.op), false); err != nil {
			return q.rejected(a, unsupported{err})
		}
	}
	count, err := a.checkShape(c.eng.Size(), c.eng.Rank())
	if err == nil && a.onDst.at == a.onSrc.at && a.onDst.at != 0 && a.kind.exchanges() {
		if err = l.InPlace(engine.Kind(a.kind)); err != nil {
			err = unsupported{fmt.Errorf("%w (%v x %d)", err, a.typ, max(int(count), a.onDst.count))}
		}
	}
	if err != nil {
		return q.rejected(a, err)
	}
	e := &l.one[0]
	if q.group != nil {
		e = q.group.more()
	}
	e.Kind, e.Type, e.Op, e.Root, e.To = engine.Kind(a.kind), engine.Type(a.typ), engineOp(a.op), max(a.root, noRoot), a.to
	e.Count, e.Sent, e.Dst, e.Src = int(count), 0, a.onDst.at, a.onSrc.at
	if a.dc != nil || e.DC != nil {
		if q.group != nil { // they are handed over later
			a.dc, a.sc = q.group.keep(a.dc), q.group.keep(a.sc)
		}
		e.DC, e.SC = a.dc, a.sc
	}
	if e.Op == engine.Scaled && a.kind.reduces() {
		e.Factor = c.calling.factors[a.op-firstScaled]
	}
	if a.kind == KindSendRecv {
		e.Sent = a.onSrc.count
	}
	meet := false
	if !alike(k, a, count) || k.To != a.to {
		a.fill(k, 0, count, &c.calling.factors)
		k.State = uint8(Running)
		meet = l.first(k, c.eng.Size())
	}
	return q.give(meet, max(a.onDst.n, a.onSrc.n))
}

// repeats reports whether an all-reduce on q is the Comm's last call on the device once more, in place in the same Memory, on any
// part of it. What issue checks was right then, and is now: only the Memory may have been freed since, and the stream been closed.
func (q *Queue) repeats(dst, src *Buf, op Op) bool {
	c := q.c
	k := &c.lib.call
	return !q.late() && Kind(k.Kind) == KindAllReduce && Op(k.Op) == op && op < firstScaled && int(k.Root) == noRoot-q.number && Type(k.Type) == dst.typ &&
		k.Count == uint64(dst.count) && dst.mem != nil && identical(dst.mem, c.lib.known) && src.inPlace() && !c.backlog.pending.Load() && !c.life.shut()
}

// repeat issues a call of which repeats is true, on dst, whose Memory is at that address.
func (q *Queue) repeat(dst *Buf, at uintptr, op Op) (w Work) {
	c := q.c
	c.calling.count++
	if !c.life.enter() {
		return q.shut(&args{kind: KindAllReduce})
	}
	if c.life.failure.Load() != nil {
		w = q.failed(&args{kind: KindAllReduce, typ: dst.typ, op: op, root: -1})
	} else {
		at += uintptr(dst.first * dst.typ.Size())
		e := &c.lib.one[0]
		if q.group != nil {
			e = q.group.more()
		}
		e.Kind, e.Type, e.Op, e.Root, e.To = engine.AllReduce, engine.Type(dst.typ), engine.Op(op), -1, 0
		e.Count, e.Sent, e.Dst, e.Src = dst.count, 0, at, at
		if e.DC != nil {
			e.DC, e.SC = nil, nil
		}
		w = q.give(false, dst.count*dst.typ.Size())
	}
	c.life.leave()
	return w
}

// give gives the call that the library's record describes its place in the order, and hands it to the library. It is about that many
// bytes.
func (q *Queue) give(meet bool, bytes int) Work {
	c, l := q.c, q.c.lib
	k := &l.call
	c.rec.lock()
	c.rec.seq++
	seq := c.rec.seq
	k.Seq, k.Hash, k.Start = seq, k.Own, c.eng.Now()
	store(&c.rec.ring[seq%ringCalls], k)
	c.rec.issuers[seq%ringCalls] = q.dev
	c.rec.unlock()
	var how engine.How
	if meet {
		how = engine.Connecting
	}
	if c.watchers.onCall != nil && q.dev.await(&k.Record, bytes) {
		how |= engine.Timed
	}
	if f := c.eng.Issued(k, meet); f != nil {
		return q.failedAs(&k.Record)
	}
	if q.group != nil {
		q.group.how |= how
		return Work{at: q.dev, seq: seq}
	}
	if err := q.dev.hand(l.one[:], seq, how); err != nil {
		return q.notHanded(k.Record, err)
	}
	return Work{at: q.dev, seq: seq}
}

// hand gives the library calls, of which seq is the last. The monitor looks at those that may wait inside for other ranks, and a
// failure of the Comm ends that.
func (d *deviceStream) hand(calls []engine.Call, seq uint64, how engine.How) error {
	h, ok := d.s.Handle()
	if !ok {
		return errStreamGone
	}
	c := d.c
	connects := how&engine.Connecting != 0
	if connects {
		c.eng.Inside(true)
	}
	span, err := c.lib.Issue(h, calls, how)
	if connects {
		c.eng.Inside(false)
	}
	if span != nil {
		d.timed(span)
	}
	if err != nil {
		return err
	}
	ordered.Store(&d.handed.ticket, seq)
	ordered.Store(&d.handed.calls, d.handed.calls+uint64(len(calls)))
	d.watch()
	return nil
}

// notHanded is the Work of calls that hand has failed with; r is of the one, or of the group.
func (q *Queue) notHanded(r call.Record, err error) Work {
	if errors.Is(err, errStreamGone) {
		return q.rejected(argsOf(&r), fmt.Errorf("the %T is closed", q.dev.s))
	}
	vendorFails(q.c, err)
	return q.failedAs(&r)
}

// argsOf is what an error says of the call in r that had no effect.
func argsOf(r *call.Record) *args {
	return &args{kind: Kind(r.Kind), typ: Type(r.Type), op: Op(r.Op), root: int(r.Root)}
}

// groupDevice collects what f issues and hands it over in one. A group whose calls were handed over
// serves the stream's next, so that none allocates; one that is begun while another is collected is
// another.
func (q Queue) groupDevice(f func(Queue) error) Work {
	g := q.dev.handed.group
	if g == nil {
		g = &group{c: q.c}
	}
	q.dev.handed.group = nil
	g.begin()
	inner := q
	inner.group, inner.use = g, g.use
	err := f(inner)
	g.over = true
	switch {
	case g.reject != nil:
		return q.rejectedBy(g.reject)
	case err != nil:
		return q.rejected(&args{kind: KindGroup, root: -1}, err)
	case len(g.foreign) == 0:
		return Work{}
	}
	if !q.c.life.enter() {
		return q.shut(&args{kind: KindGroup, root: -1})
	}
	defer q.c.life.leave()
	if err := q.dev.hand(g.foreign, q.c.rec.seq, g.how); err != nil {
		return q.notHanded(call.Record{Seq: q.c.rec.seq, Kind: call.Kind(KindGroup), Count: uint64(len(g.foreign)), Root: -1}, err)
	}
	q.dev.handed.group = g
	return Work{at: q.dev, seq: q.c.rec.seq}
}

// failed is the Work of a call, of which no more is known than a, on a Comm that has failed.
func (q *Queue) failed(a *args) Work {
	return q.failedAs(&call.Record{Seq: q.c.rec.seq, Kind: call.Kind(a.kind), Type: uint8(a.typ), Op: uint8(a.op), Root: int32(a.root),
		Count: uint64(max(a.onDst.count, a.onSrc.count))})
}

// failedAs is the Work of the call in r on a Comm that has failed. It ends the use of the Comm,
// which OnFailure may close.
func (q *Queue) failedAs(r *call.Record) Work {
	q.c.life.leave()
	w := Work{err: q.c.errorIn(context.Background(), nil, r)}
	tellFailed(q.c) // of this call, if the Comm's failure was told before it was noted
	return w
}
