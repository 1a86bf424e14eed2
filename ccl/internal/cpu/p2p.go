package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Point-to-point calls have a sequence of their own for each ordered pair of ranks,
// and links of their own, so they need not stand in the order of the collectives.

// pointToPoint runs a Send, Recv or SendRecv.
func (c *Links) pointToPoint(ctx context.Context, k *Call) *Fault {
	e := &c.exec
	e.tx, e.rx = e.tx[:0], e.rx[:0]
	to, from := int(k.Root), int(k.Root)
	if k.Kind == SendRecv {
		to = k.To
	}
	if !c.opt.Strict && (k.Kind == Recv || c.near(e.out.l, to)) && (k.Kind == Send || c.near(e.in.l, from)) {
		return c.pointToPointHere(ctx, k, to, from)
	}
	if f := c.addPointToPoint(ctx, k); f != nil {
		return f
	}
	return c.move(ctx, e.tx, e.rx)
}

// addPointToPoint adds the messages of k to those under way.
func (c *Links) addPointToPoint(ctx context.Context, k *Call) *Fault {
	switch k.Kind {
	case Send:
		return c.addSend(ctx, k, int(k.Root))
	case Recv:
		return c.addRecv(ctx, k, int(k.Root))
	}
	out := *k
	if len(k.Src) > tuning.HeaderPayload && ptr(k.Src) == ptr(k.Dst) { // what arrives must not replace what has not left
		out.Src = append([]byte(nil), k.Src...)
	}
	if f := c.addSend(ctx, &out, k.To); f != nil {
		return f
	}
	return c.addRecv(ctx, k, int(k.Root))
}

// pairHash is what the two ends of a message must agree on.
func (c *Links) pairHash(k *Call, count int) uint32 {
	if c.opt.Unchecked {
		return 1
	}
	return newMix(uint64(count), Send, k.Type, 0, -1).Sum()
}

func (c *Links) addSend(ctx context.Context, k *Call, to int) *Fault {
	l, f := c.link(ctx, to, pointToPoint)
	if f != nil {
		return f
	}
	h := head{comm: c.id, kind: messageData, record: k.Record}
	h.record.Hash = c.pairHash(k, len(k.Src)/max(k.Elem, 1))
	h.record.Seq = l.sent
	l.sent++
	c.newSender().start(l, &h, k.Src)
	if c.opt.Strict { // the receiver confirms
		l, f := c.link(ctx, to, confirmations)
		if f != nil {
			return f
		}
		c.newReceiver().start(l, c.confirmation(k, h.record.Seq), nil)
	}
	return nil
}

func (c *Links) addRecv(ctx context.Context, k *Call, from int) *Fault {
	l, f := c.link(ctx, from, pointToPoint)
	if f != nil {
		return f
	}
	h := head{comm: c.id, kind: messageData, record: k.Record}
	h.record.Hash = c.pairHash(k, len(k.Dst)/max(k.Elem, 1))
	h.record.Seq = l.received
	l.received++
	r := c.newReceiver()
	r.start(l, h, k.Dst)
	if c.opt.Strict {
		l, f := c.link(ctx, from, confirmations)
		if f != nil {
			return f
		}
		h := c.confirmation(k, h.record.Seq)
		s := c.newSender()
		s.start(l, &h, nil)
		s.behind = r
	}
	return nil
}

// confirmation is the header of the message that says a Send was received.
func (c *Links) confirmation(k *Call, seq uint64) head {
	h := head{comm: c.id, kind: messageData, record: k.Record}
	h.record.Seq, h.record.Hash = seq, 1
	return h
}
