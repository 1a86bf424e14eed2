package ccl

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/engine"
)

// extent is memory by address and length in bytes, wherever it lies.
type extent struct {
	at uintptr
	n  int
}

// on is the extent of b, device memory that must belong to the Comm's device.
func (b Buf) on(l *library) (extent, error) {
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
	return extent{at + uintptr(b.first*e), b.count * e}, nil
}

// owns is an error of memory that is not of the Comm's device.
func (l *library) owns(m deviceMemory) error {
	if p, ok := m.(interface{ Platform() string }); ok && l.platform != "" {
		if name := p.Platform(); name != l.platform {
			return fmt.Errorf("the memory is of package %s, the Comm's backend %s works on that of package %s", name, l.backend.Name(), l.platform)
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
	c, l := q.c, q.c.lib
	if c.failure.Load() != nil {
		return q.failed(a)
	}
	if what := [3]uint8{uint8(a.kind), uint8(a.typ), uint8(a.op)}; what != l.supported {
		if err := l.Supports(engine.Kind(a.kind), engine.Type(a.typ), engine.Op(a.op), false); err != nil {
			return q.rejected(a, unsupported{err})
		}
		l.supported = what
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
	e.Kind, e.Type, e.Op, e.Root, e.To = engine.Kind(a.kind), engine.Type(a.typ), engine.Op(a.op), a.root, a.to
	e.Count, e.Sent, e.Dst, e.Src = int(count), 0, a.onDst.at, a.onSrc.at
	if a.dc != nil || e.DC != nil {
		e.DC, e.SC = a.dc, a.sc
	}
	if a.kind == KindSendRecv {
		e.Sent = a.onSrc.n / max(a.typ.Size(), 1)
	}
	shared := c.pending.Load() // a HostStream's goroutine writes into the ring as well
	if shared {
		c.mu.Lock()
	}
	c.writing()
	c.seq++
	seq, k := c.seq, &l.call
	c.fill(k, a, seq, count)
	k.State, k.Start = uint8(Running), c.eng.Now()
	c.ring[seq%ringCalls], c.issuers[seq%ringCalls] = k.Record, q.dev
	c.written()
	if shared {
		c.mu.Unlock()
	}
	if f := c.eng.Issued(k); f != nil {
		return q.failed(a)
	}
	if q.group != nil {
		return Work{c: c, dev: q.dev, seq: seq}
	}
	return q.hand(a, l.one[:], seq)
}

// hand gives the library calls, of which seq is the last.
func (q Queue) hand(a *args, calls []engine.Call, seq uint64) Work {
	c := q.c
	h, ok := q.dev.s.Handle()
	if !ok {
		return q.rejected(a, fmt.Errorf("the %T is closed", q.dev.s))
	}
	if err := c.lib.Issue(h, calls); err != nil {
		c.vendorFails(err)
		return q.failed(a)
	}
	q.dev.issued.Store(seq)
	if !c.watching.Load() && c.watching.CompareAndSwap(false, true) {
		go c.watchDevice()
	}
	return Work{c: c, dev: q.dev, seq: seq}
}

// groupDevice collects what f issues and hands it over in one.
func (q Queue) groupDevice(f func(Queue) error) Work {
	inner := q
	inner.group = &group{}
	a := &args{kind: KindGroup, root: -1}
	err := f(inner)
	switch {
	case inner.group.reject != nil:
		return q.rejectedBy(inner.group.reject)
	case err != nil:
		return q.rejected(a, err)
	case len(inner.group.foreign) == 0:
		return Work{}
	}
	return q.hand(a, inner.group.foreign, q.c.seq)
}

// failed is the Work of a call on a Comm that has failed.
func (q Queue) failed(a *args) Work {
	r := cpu.Record{Seq: q.c.seq, Kind: cpu.Kind(a.kind), Type: uint8(a.typ), Op: uint8(a.op), Root: int32(a.root)}
	return Work{c: q.c, err: q.c.errorIn(&r)}
}
