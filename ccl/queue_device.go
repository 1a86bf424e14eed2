package ccl

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// deviceArea is where b lies, device memory that must belong to the Comm's device.
func (b *Buf) deviceArea(l *library) (area, error) {
	if b.mem == nil {
		if b.typ == TypeNone || b.host == nil && b.count == 0 {
			return area{}, nil
		}
		return area{}, errors.New("host memory where device memory is needed: copy it to the device, or issue the call on a HostStream")
	}
	at, ok := b.mem.Ptr()
	if !ok {
		return area{}, errors.New("the device memory was freed")
	}
	if same := *(*[2]uintptr)(unsafe.Pointer(&b.mem)); same != l.known[0].identity && same != l.known[1].identity {
		if err := l.checkDevice(b.mem, "the memory"); err != nil {
			return area{}, err
		}
		l.known = [2]knownMemory{{same, b.mem}, l.known[0]}
	}
	if b.first != 0 {
		at += uintptr(b.first * b.typ.Size())
	}
	return area{at: at, n: b.count}, nil
}

// knownMemory is memory that was found to be on the Comm's device. Its identity is the words of the
// interface: one value has them, not just an equal one, and its type need not be comparable. The
// memory is kept, so that no other has the same.
type knownMemory struct {
	identity [2]uintptr
	memory   deviceMemory
}

// deviceQueue is the queue of c on a stream of its device.
func deviceQueue(c *Comm, s Stream) Queue {
	refuse := func(code Code, err error) Queue {
		return Queue{c: c, err: &Error{Code: code, Op: "On", Rank: c.Rank(), Peer: -1, Err: err}}
	}
	switch _, ok := s.Handle(); {
	case c.lib.device < 0:
		return refuse(ErrUnsupported, fmt.Errorf("the %s backend runs on a HostStream, not on a %s", c.Backend(),
			typeName(s)))
	case !ok:
		return refuse(ErrArgument, fmt.Errorf("the %s is closed", typeName(s)))
	}
	d, err := c.devices.stream(c, s)
	if err != nil {
		return refuse(ErrArgument, err)
	}
	return Queue{c: c, dev: d}
}

// awaitHost waits until the calls that were queued before on the host have ended: a Comm's calls
// have one order, and these have their place in it only when they run.
func (q *Queue) awaitHost() {
	c := q.c
	c.backlog.until(context.Background(), func() bool {
		return c.backlog.ran == c.backlog.issued || c.life.closed.Load() || c.life.failure.Load() != nil
	})
}

// issueDevice gives a call, whose arguments are resolved, its place in the order, and hands it to
// the library, or to the group that is collected. It allocates nothing.
func (q *Queue) issueDevice(a *args) Work {
	c, l, k := q.c, q.c.lib, &q.c.lib.call
	if c.backlog.pending.Load() {
		q.awaitHost()
	}
	if !c.life.enter() {
		return q.shut(a.kind)
	}
	if c.life.failure.Load() != nil {
		return q.failedAs(&call.Record{Seq: c.rec.seq, Kind: a.kind, Type: op.Type(a.typ), Op: op.Op(a.op),
			Root: int32(a.root), Count: uint64(max(a.dst.n, a.src.n))})
	}
	if q.group != nil {
		k = q.group.add(a)
	}
	changed, err := describe(c, k, a, false)
	if err == nil && k.DstAt == k.SrcAt && k.Kind.Exchanges() {
		err = l.takesInPlace(k)
	}
	if err != nil {
		return q.rejectedOnDevice(a.kind, err)
	}
	var how engine.How
	meet := changed && l.end.First(k)
	if meet {
		how = engine.Connecting
	}
	c.rec.begin(k, q.dev, c.rec.clock.Now())
	if c.watchers.onCall != nil && q.dev.await(&k.Record, max(k.DstN, k.SrcN)*k.Elem) {
		how |= engine.Timed
	}
	if f := l.end.Enter(k, meet); f != nil {
		return q.failedAs(&k.Record)
	}
	if q.group != nil {
		q.group.how |= how
	} else if err := q.dev.submit(l.one[:], k.Seq, how); err != nil {
		return q.submitFailed(k.Record, err)
	}
	c.life.busy.Clear()
	return Work{at: q.dev, seq: k.Seq}
}

// takesInPlace is why the library cannot make k in place, after which k is no call; or nil.
func (l *library) takesInPlace(k *call.Call) error {
	err := l.end.InPlace(k.Kind)
	if err == nil || k.DstAt == 0 { // there is no memory
		return nil
	}
	k.Kind = 0
	return unsupported{fmt.Errorf("%w (%v x %d)", err, k.Type, max(int(k.Count), k.DstN))}
}

// rejectedOnDevice is the Work of a call that describe has refused. It ends the use of the Comm.
func (q *Queue) rejectedOnDevice(k call.Kind, err error) Work {
	if q.group != nil {
		q.group.drop(false)
	}
	w := q.rejected(k, err)
	q.c.life.busy.Clear()
	return w
}

// submit gives the library calls, of which seq is the last.
func (d *deviceStream) submit(calls []*call.Call, seq uint64, how engine.How) error {
	h, ok := d.s.Handle()
	if !ok {
		return errStreamGone
	}
	span, err := d.c.lib.end.Issue(h, calls, how)
	if span != nil {
		d.timed(span)
	}
	if err != nil {
		return err
	}
	ordered.Store(&d.handed.ticket, seq)
	ordered.Store(&d.handed.calls, d.handed.calls+uint64(len(calls)))
	if !d.c.devices.watching.Load() {
		d.watch()
	}
	return nil
}

// submitFailed is the Work of calls that submit has failed with; r is of the one, or of the group.
// It ends the use of the Comm.
func (q *Queue) submitFailed(r call.Record, err error) Work {
	if errors.Is(err, errStreamGone) {
		w := q.rejected(r.Kind, fmt.Errorf("the %s is closed", typeName(q.dev.s)))
		q.c.life.busy.Clear()
		return w
	}
	vendorFails(q.c, err)
	return q.failedAs(&r)
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
		return q.rejected(call.Group, err)
	case len(g.calls) == 0:
		return Work{}
	}
	if !q.c.life.enter() {
		return q.shut(call.Group)
	}
	if err := q.dev.submit(g.calls, q.c.rec.seq, g.how); err != nil {
		return q.submitFailed(call.Record{Seq: q.c.rec.seq, Kind: call.Group, Count: uint64(len(g.calls)), Root: -1}, err)
	}
	q.c.life.busy.Clear()
	q.dev.handed.group = g
	return Work{at: q.dev, seq: q.c.rec.seq}
}

// failedAs is the Work of the call in r on a Comm that has failed. It ends the use of the Comm,
// which OnFailure may close.
func (q *Queue) failedAs(r *call.Record) Work {
	q.c.life.busy.Clear()
	q.c.life.lost.meet()
	w := Work{err: q.c.errorIn(context.Background(), nil, r)}
	tellFailed(q.c) // of this call, if the Comm's failure was told before it was noted
	return w
}
