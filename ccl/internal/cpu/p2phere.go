package cpu

import (
	"context"

	"github.com/goccl/goccl/internal/reduce"
)

// Messages whose both ends are on this host need no header and no state that outlives the call: they are records of
// the pipe between the two. Groups of calls, CheckStrict and a SendRecv of which one end is on another host send them
// as streams, like those between hosts; a link carries both, and whoever receives takes either.

// near reports whether rank r is on this host, as l's is, if it is not nil.
func (c *Links) near(l *link, r int) bool {
	return l != nil && l.peer == r || c.topo.Node(r) == c.topo.Node(c.rank)
}

// outgoing is a message on its way out of a point-to-point call, incoming one on its way in.
type outgoing struct {
	l     *link // the last call's, while there is no other
	seq   uint64
	hash  uint32
	begun bool
	done  bool
	left  []byte
	offer uint64 // of the rendezvous under way
	piped bool   // there is to be none
}

type incoming struct {
	l     *link
	seq   uint64
	hash  uint32
	begun bool
	done  bool
	left  []byte
	slow  *receiver // what comes is a stream
}

// pointToPointHere runs a Send to rank to of this host, a Recv from rank from, or both.
func (c *Links) pointToPointHere(ctx context.Context, k *Call, to, from int) *Fault {
	f := c.pairHere(ctx, k, to, from)
	if f != nil {
		c.exec.out.withdraw()
	}
	return f
}

func (c *Links) pairHere(ctx context.Context, k *Call, to, from int) (f *Fault) {
	out, in := &c.exec.out, &c.exec.in
	hash := c.pairHash(k, int(k.Count))
	if out.done = k.Kind == Recv; !out.done {
		l := out.l
		if l == nil || l.peer != to {
			if l, f = c.link(ctx, to, pointToPoint); f != nil {
				return f
			}
			out.l = l
		}
		out.seq, out.hash, out.begun, out.left, out.piped = l.sent, hash, false, k.Src, false
		if k.Kind == SendRecv && len(k.Src) != len(k.Dst) { // its count is that of Dst
			out.hash = c.pairHash(k, len(k.Src)/max(k.Elem, 1))
		}
		l.sent++
	}
	if in.done = k.Kind == Send; !in.done {
		l := in.l
		if l == nil || l.peer != from {
			if l, f = c.link(ctx, from, pointToPoint); f != nil {
				return f
			}
			in.l = l
		}
		in.seq, in.hash, in.begun, in.left, in.slow = l.received, hash, false, k.Dst, nil
		l.received++
		if r := l.from; r != nil {
			if k.Kind == SendRecv && to == from {
				r.keep = true
			} else if r.keep {
				r.release()
			}
		}
	}
	if !out.done {
		inPlace := k.Kind == SendRecv && ptr(k.Src) == ptr(k.Dst)
		if inPlace && c.offers(out, k) && (c.wouldRead() || !c.site.host.Shared()) {
			c.setAside(out)
			inPlace = false
		}
		c.sendHere(out, k)
		if !out.done && inPlace { // what arrives must not replace what has not left
			c.setAside(out)
		}
	}
	var w waiter
	for laps := 0; ; {
		moved := false
		if !in.done {
			if moved, f = c.receiveHere(ctx, in, k); f != nil {
				return f
			}
		}
		if !out.done {
			moved = c.sendHere(out, k) || moved
		}
		if in.done && out.done {
			out.left, in.left = nil, nil
			return nil
		}
		if moved {
			if w.nap > 0 {
				c.stir()
			}
			w = waiter{}
			if laps++; laps&4095 == 0 { // a call that always moves must notice the end, too
				if f := c.interrupted(ctx); f != nil {
					return f
				}
			}
			continue
		}
		if out.done && in.slow == nil && in.l.from != nil {
			if in.l.from.await(c.spins) {
				continue
			}
		} else if w.looks++; w.looks < c.spins/16 {
			continue
		}
		w.looks, w.several = 0, !in.done && !out.done
		l := in.l
		if in.done {
			l = out.l
		}
		if f := c.pause(ctx, &w, l.peer); f != nil {
			return f
		}
	}
}

// setAside copies what is left of a message, which what arrives would replace.
func (c *Links) setAside(o *outgoing) {
	left := c.work.scratch(len(o.left))
	reduce.Copy(ptr(left), ptr(o.left), len(left)) // which can be preempted
	o.left = left
}

// await looks for the next record, so many times.
func (r *pipeReader) await(looks int) bool {
	for range looks {
		if r.cell() != nil {
			return true
		}
	}
	return false
}

// sendHere writes the next record of a message, if there is room.
func (c *Links) sendHere(o *outgoing, k *Call) bool {
	if o.offer != 0 {
		return o.answered()
	}
	w := o.l.to
	e := w.cell()
	if e == nil {
		return false
	}
	what := uint32(recordMore)
	if !o.begun {
		if c.offers(o, k) && c.offer(o, k, e) {
			return true
		}
		what = recordMessage
		o.begin(e, k)
	}
	n := w.put(e, what, o.hash, o.left)
	if n < 0 {
		return false
	}
	o.begun = true
	o.left = o.left[n:]
	o.done = len(o.left) == 0
	return true
}

// begin says in e that the message begins.
func (o *outgoing) begin(e *cell, k *Call) {
	e.bytes, e.seq, e.count, e.root = uint64(len(o.left)), o.seq, k.Count, k.Root
	e.kind, e.typ, e.op, e.state = k.Kind, k.Type, k.Op, k.State
}

// receiveHere takes the next record of a message, if that has come.
func (c *Links) receiveHere(ctx context.Context, i *incoming, k *Call) (moved bool, f *Fault) {
	if i.slow != nil {
		moved, f = c.progressIn(i.slow)
		i.done = i.slow.done
		return moved, f
	}
	r := i.l.from
	if r == nil {
		return c.ready(i.l)
	}
	e := r.cell()
	if e == nil {
		return false, nil
	}
	if !i.begun {
		if e.record() == recordStream {
			i.slow = c.newReceiver()
			i.slow.start(i.l, head{comm: c.id, kind: messageData, record: c.expected(i, k)}, i.left)
			return true, nil
		}
		if !i.fits(e) {
			mine, theirs := c.expected(i, k), e.said()
			return false, c.stop(disagree(mine, theirs, i.l.peer))
		}
		if e.record() == recordOffer {
			return true, c.fetchOffered(ctx, i, e)
		}
		i.begun = true
	}
	n := copy(i.left, r.data(e))
	r.done(e)
	i.left = i.left[n:]
	i.done = len(i.left) == 0
	return true, nil
}

// fits reports whether e begins the message that is waited for.
func (i *incoming) fits(e *cell) bool {
	r := e.record()
	return (r == recordMessage || r == recordOffer) && uint32(e.flag) == i.hash && e.seq == i.seq && e.bytes == uint64(len(i.left))
}

// expected is what this rank says of a message that it receives.
func (c *Links) expected(i *incoming, k *Call) Record {
	r := k.Record
	r.Seq, r.Hash = i.seq, i.hash
	return r
}
