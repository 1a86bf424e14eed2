package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/engine"
	"github.com/goccl/goccl/ccl/internal/ordered"
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
	if p, ok := m.(interface{ Platform() string }); ok && l.platform != "" {
		if name := p.Platform(); name != l.platform {
			return fmt.Errorf("the memory is from package %s, but the Comm's backend %s needs memory from package %s", name, l.backend.Name(), l.platform)
		}
	}
	if d := m.Device(); d != l.device {
		return fmt.Errorf("the memory is on device %d, but the Comm is on device %d", d, l.device)
	}
	return nil
}

// identical reports whether a and b are one value, not just equal ones, whose type need not be comparable.
func identical(a, b deviceMemory) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// deviceQueue is the queue of c on a stream of its device.
func (c *Comm) deviceQueue(s Stream) Queue {
	refuse := func(code Code, err error) Queue {
		return Queue{c: c, err: &Error{Code: code, Op: "On", Rank: c.Rank(), Peer: -1, Err: err}}
	}
	switch _, ok := s.Handle(); {
	case c.lib == nil || c.lib.device < 0:
		return refuse(ErrUnsupported, fmt.Errorf("the %s backend runs on a HostStream, not on a %T", c.Backend(), s))
	case !ok:
		return refuse(ErrArgument, fmt.Errorf("the %T is closed", s))
	}
	return Queue{c: c, dev: c.stream(s)}
}

// issueDevice hands a call, whose arguments are resolved, to the library. It allocates nothing.
func (q Queue) issueDevice(a *args) Work {
	if q.c.pending.Load() {
		q.awaitHost()
	}
	if !q.c.enter() {
		return q.shut(a)
	}
	w := q.issueEntered(a)
	q.c.leave()
	return w
}

// awaitHost waits until the calls that were queued before on the host have ended: a Comm's calls have one order, and these have their
// place in it only when they run.
func (q Queue) awaitHost() {
	c := q.c
	c.until(context.Background(), func() bool { return c.ran == c.queued || c.closed.Load() || c.failure.Load() != nil })
}

// issueEntered is issueDevice of one who uses the Comm.
func (q Queue) issueEntered(a *args) Work {
	c, l := q.c, q.c.lib
	if c.failure.Load() != nil {
		return q.failed(a)
	}
	k := &l.call
	if Kind(k.Kind) != a.kind || Type(k.Type) != a.typ || Op(k.Op) != a.op { // the last call was supported
		if a.op >= firstScaled && a.kind.reduces() {
			if _, err := factorOf(c, a.typ, a.op); err != nil {
				return q.rejected(a, err)
			}
		}
		if err := l.Supports(engine.Kind(a.kind), engine.Type(a.typ), engineOp(a.op), false); err != nil {
			return q.rejected(a, unsupported{err})
		}
	}
	count, err := c.checkShape(a)
	if err != nil {
		return q.rejected(a, err)
	}
	e := &l.one[0]
	if q.group != nil {
		q.group.foreign = append(q.group.foreign, engine.Call{})
		e = &q.group.foreign[len(q.group.foreign)-1]
	}
	e.Kind, e.Type, e.Op, e.Root, e.To = engine.Kind(a.kind), engine.Type(a.typ), engineOp(a.op), a.root, a.to
	e.Count, e.Sent, e.Dst, e.Src = int(count), 0, a.onDst.at, a.onSrc.at
	if a.dc != nil || e.DC != nil {
		if q.group != nil { // they are handed over later
			a.dc, a.sc = slices.Clone(a.dc), slices.Clone(a.sc)
		}
		e.DC, e.SC = a.dc, a.sc
	}
	if e.Op == engine.Scaled && a.kind.reduces() {
		e.Factor = c.factors[a.op-firstScaled]
	}
	if a.kind == KindSendRecv {
		e.Sent = a.onSrc.count
	}
	c.recording.begin()
	c.seq++
	seq := c.seq
	meet := false
	if alike(k, a, count) && k.To == a.to {
		k.Seq, k.Hash, k.Start = seq, k.Own, c.eng.Now()
	} else {
		c.fill(k, a, seq, count)
		k.Start, k.State = c.eng.Now(), uint8(Running)
		meet = l.first(k, c.Size())
	}
	r := &c.ring[seq%ringCalls] // field by field: see storeRecord of cpu
	r.Seq, r.Count, r.Start, r.End = seq, count, k.Start, 0
	r.Root, r.Hash, r.Number = k.Root, k.Hash, 0
	r.Kind, r.Type, r.Op, r.State, r.Times = k.Kind, k.Type, k.Op, uint8(Running), k.Times
	c.issuers[seq%ringCalls] = q.dev
	c.recording.end()
	if f := c.eng.Issued(k, meet); f != nil {
		return q.failed(a)
	}
	if q.group != nil {
		q.group.connect = q.group.connect || meet
		return Work{at: q.dev, seq: seq}
	}
	if err := q.dev.hand(l.one[:], seq, meet); err != nil {
		return q.notHanded(a, err)
	}
	return Work{at: q.dev, seq: seq}
}

// hand gives the library calls, of which seq is the last. With connect it may wait inside for other ranks: the monitor looks at that, and
// a failure of the Comm ends it.
func (d *deviceStream) hand(calls []engine.Call, seq uint64, connect bool) error {
	h, ok := d.s.Handle()
	if !ok {
		return errStreamGone
	}
	c := d.c
	if connect {
		c.eng.Inside(true)
		err := c.lib.connector.Connect(h, calls)
		c.eng.Inside(false)
		if err != nil {
			return err
		}
	} else if err := c.lib.Issue(h, calls); err != nil {
		return err
	}
	ordered.Store(&d.handed.ticket, seq)
	ordered.Store(&d.handed.calls, d.handed.calls+uint64(len(calls)))
	d.watch()
	return nil
}

// notHanded is the Work of calls that hand has failed with.
func (q Queue) notHanded(a *args, err error) Work {
	if errors.Is(err, errStreamGone) {
		return q.rejected(a, fmt.Errorf("the %T is closed", q.dev.s))
	}
	q.c.vendorFails(err)
	return q.failed(a)
}

// groupDevice collects what f issues and hands it over in one.
func (q Queue) groupDevice(f func(Queue) error) Work {
	inner := q
	inner.group = &group{}
	a := &args{kind: KindGroup, root: -1}
	err := f(inner)
	inner.group.over = true
	switch {
	case inner.group.reject != nil:
		return q.rejectedBy(inner.group.reject)
	case err != nil:
		return q.rejected(a, err)
	case len(inner.group.foreign) == 0:
		return Work{}
	}
	if !q.c.enter() {
		return q.shut(a)
	}
	defer q.c.leave()
	if err := q.dev.hand(inner.group.foreign, q.c.seq, inner.group.connect); err != nil {
		return q.notHanded(a, err)
	}
	return Work{at: q.dev, seq: q.c.seq}
}

// failed is the Work of a call on a Comm that has failed. It ends the use of the Comm, which OnFailure may close.
func (q Queue) failed(a *args) Work {
	q.c.leave()
	r := call.Record{Seq: q.c.seq, Kind: call.Kind(a.kind), Type: uint8(a.typ), Op: uint8(a.op), Root: int32(a.root)}
	return Work{err: q.c.errorIn(context.Background(), nil, &r)}
}
