package links

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Messages whose both ends are on this host need no header and no state that outlives the call: they are records of
// the pipe between the two. Groups of calls, CheckStrict and a SendRecv of which one end is on another host send them
// as streams, like those between hosts; a link carries both, and a receiver takes either.

// near reports whether rank r is on this host, as l's is, if it is not nil.
func (c *pairs) near(l *Link, r int) bool {
	return l != nil && l.peer == r || c.rank.Group.IsHere(r)
}

// Outgoing is a message on its way out of a point-to-point call, incoming one on its way in.
type Outgoing struct {
	L     *Link  // the last call's, while there is no other
	place uint64 // among the messages of the link
	Hash  uint32
	begun bool
	Done  bool
	Left  []byte
	offer uint64 // of the rendezvous under way
	piped bool   // there is to be none
}

type Incoming struct {
	L     *Link
	place uint64 // as an Outgoing's
	Hash  uint32
	begun bool
	Done  bool
	Left  []byte
	slow  *receiver // what comes is a stream
}

// pointToPointHere runs a Send to rank to of this host, a Recv from rank from, or both.
func (c *pairs) pointToPointHere(ctx context.Context, k *call.Call, to, from int) *call.Fault {
	f := c.pairHere(ctx, k, to, from)
	if f != nil {
		c.out.Withdraw()
	}
	return f
}

func (c *pairs) pairHere(ctx context.Context, k *call.Call, to, from int) (f *call.Fault) {
	out, in := &c.out, &c.in
	hash := c.pairHash(k, int(k.Count))
	if out.Done = k.Kind == call.Recv; !out.Done {
		l := out.L
		if l == nil || l.peer != to {
			if l, f = c.ends.Link(ctx, to, PointToPoint); f != nil {
				return f
			}
			out.L = l
		}
		out.place, out.Hash, out.begun, out.Left, out.piped = l.sent, hash, false, k.Src, false
		if k.Kind == call.SendRecv && len(k.Src) != len(k.Dst) { // its count is that of Dst
			out.Hash = c.pairHash(k, len(k.Src)/max(k.Elem, 1))
		}
		l.sent++
	}
	if in.Done = k.Kind == call.Send; !in.Done {
		l := in.L
		if l == nil || l.peer != from {
			if l, f = c.ends.Link(ctx, from, PointToPoint); f != nil {
				return f
			}
			in.L = l
		}
		in.place, in.Hash, in.begun, in.Left, in.slow = l.received, hash, false, k.Dst, nil
		l.received++
		if r := l.From; r != nil {
			if k.Kind == call.SendRecv && to == from {
				r.keep = true
			} else if r.keep {
				r.release()
			}
		}
	}
	if !out.Done {
		inPlace := k.Kind == call.SendRecv && op.Ptr(k.Src) == op.Ptr(k.Dst)
		if inPlace && c.Offers(out, k) && (c.rank.Standing.WouldReadMessage(len(k.Src)) || !c.rank.Site.Here.Host.Shared()) {
			c.setAside(out)
			inPlace = false
		}
		c.SendHere(out, k)
		if !out.Done && inPlace { // what arrives must not replace what has not left
			c.setAside(out)
		}
	}
	var w patience
	for {
		moved := false
		if !in.Done {
			if moved, f = c.ReceiveHere(ctx, in, k); f != nil {
				return f
			}
		}
		if !out.Done {
			moved = c.SendHere(out, k) || moved
		}
		if in.Done && out.Done {
			out.Left, in.Left = nil, nil
			return nil
		}
		if moved {
			if f := w.moved(ctx, c.ends); f != nil {
				return f
			}
			continue
		}
		if out.Done && in.slow == nil && in.L.From != nil {
			if in.L.From.await(c.rank.Share.Spins) {
				continue
			}
		} else if w.wait.Looks++; w.wait.Looks < c.rank.Share.Spins/16 {
			continue
		}
		w.wait.Looks, w.wait.Several = 0, !in.Done && !out.Done
		l := in.L
		if in.Done {
			l = out.L
		}
		if f := c.rank.Pause(ctx, &w.wait, l.peer); f != nil {
			return f
		}
	}
}

// setAside copies what is left of a message, which what arrives would replace.
func (c *pairs) setAside(o *Outgoing) {
	left := c.work.Scratch(len(o.Left))
	reduce.Copy(op.Ptr(left), op.Ptr(o.Left), len(left)) // which can be preempted
	o.Left = left
}

// await looks for the next record, so many times.
func (r *pipeReader) await(looks int) bool {
	for range looks {
		if r.Cell() != nil {
			return true
		}
	}
	return false
}

// SendHere writes the next record of a message, if there is room.
func (c *pairs) SendHere(o *Outgoing, k *call.Call) bool {
	if o.offer != 0 {
		return o.answered()
	}
	w := o.L.To
	e := w.cell()
	if e == nil {
		return false
	}
	what := uint32(recordMore)
	if !o.begun {
		if c.Offers(o, k) && c.offer(o, k, e) {
			return true
		}
		what = recordMessage
		o.begin(e, k)
	}
	n := w.put(e, what, o.Hash, o.Left)
	if n < 0 {
		return false
	}
	o.begun = true
	o.Left = o.Left[n:]
	if o.Done = len(o.Left) == 0; !o.Done && w.pipe.larger != nil {
		w.grow()
	}
	return true
}

// offer writes a record that says where the data lie, unless the receiver could not reach them there.
func (c *pairs) offer(o *Outgoing, k *call.Call, e *cell) bool {
	if k.Kind == call.SendRecv && op.Ptr(o.Left) == op.Ptr(k.Dst) {
		return false // what arrives would replace it before it is fetched
	}
	p := c.rank.Site.Here.Host.SpanOf(o.Left)
	if p.Size == 0 && c.rank.Site.Here.Host.Shared() && !c.rank.Standing.WouldReadMessage(len(o.Left)) {
		return false
	}
	c.mem.ToBeRead(&p, o.Left)
	w := o.L.To
	r := w.pipe.rendezvous()
	r.from, r.pid, r.at, r.Number = p, reach.OwnPID, uint64(uintptr(unsafe.Pointer(&reach.Secret))), reach.Secret
	o.offer = offerNumber(w.wrote + 1)
	atomic.StoreUint64(&r.State, o.offer|offered)
	o.begin(e, k)
	w.post(e, 0, 0, inCell|RecordOffer, o.Hash)
	return true
}

// begin says in e that the message begins.
func (o *Outgoing) begin(e *cell, k *call.Call) {
	e.bytes, e.nth, e.seq, e.root = uint64(len(o.Left)), o.place, k.Seq, k.Root
	e.kind, e.typ, e.op, e.state = k.Kind, uint8(k.Type), uint8(k.Op), k.State
}

// ReceiveHere takes the next record of a message, if that has come.
func (c *pairs) ReceiveHere(ctx context.Context, i *Incoming, k *call.Call) (moved bool, f *call.Fault) {
	if i.slow != nil {
		moved, f = c.messages.progressIn(ctx, i.slow)
		i.Done = i.slow.done
		return moved, f
	}
	r := i.L.From
	if r == nil {
		return c.ends.Ready(i.L)
	}
	e := r.Cell()
	if e == nil {
		return false, nil
	}
	if !i.begun {
		if e.Record() == recordStream {
			i.slow = c.messages.newReceiver()
			i.slow.start(i.L, head{comm: c.rank.Group.ID(), kind: messageData, record: c.expected(i, k)}, i.Left)
			return true, nil
		}
		if !i.fits(e) && e.moved() {
			return c.followHere(i)
		} else if !i.fits(e) {
			mine, theirs := c.expected(i, k), e.said()
			return false, c.rank.Stop(plane.Disagree(mine, theirs, i.L.peer))
		}
		if e.Record() == RecordOffer {
			return true, c.fetchOffered(ctx, i, e)
		}
		i.begun = true
	} else if e.moved() {
		return c.followHere(i)
	}
	n := copy(i.Left, r.data(e))
	r.done(e)
	i.Left = i.Left[n:]
	i.Done = len(i.Left) == 0
	return true, nil
}

// followHere goes on in the larger pipe to which the sender has moved.
func (c *pairs) followHere(i *Incoming) (bool, *call.Fault) {
	if !i.L.From.follow() {
		return false, c.ends.unmapped(i.L.peer)
	}
	return true, nil
}

// fits reports whether e begins the message that is waited for.
func (i *Incoming) fits(e *cell) bool {
	r := e.Record()
	return (r == recordMessage || r == RecordOffer) && uint32(e.flag) == i.Hash && e.nth == i.place &&
		e.bytes == uint64(len(i.Left))
}

// expected is the record that this rank expects with a message.
func (c *pairs) expected(i *Incoming, k *call.Call) call.Record {
	r := k.Record
	r.Place, r.Hash = i.place, i.Hash
	return r
}
