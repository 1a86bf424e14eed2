package links

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// Point-to-point calls have a sequence of their own for each ordered pair of ranks,
// and links of their own, so they need not stand in the order of the collectives.

// pairs are the point-to-point calls of a rank.
type pairs struct {
	rank     *plane.Member
	mem      *reach.Reach
	ends     *ends
	messages *messages
	work     *call.Workspace
	out      Outgoing // of the call under way, or the last
	in       Incoming
}

// PointToPoint runs a Send, Recv or SendRecv.
func (c *pairs) PointToPoint(ctx context.Context, k *call.Call) *call.Fault {
	c.messages.Begin()
	to, from := int(k.Root), int(k.Root)
	if k.Kind == call.SendRecv {
		to = k.To
	}
	if !c.rank.Group.Strict() && (k.Kind == call.Recv || c.near(c.out.L, to)) &&
		(k.Kind == call.Send || c.near(c.in.L, from)) {
		return c.pointToPointHere(ctx, k, to, from)
	}
	if f := c.AddPointToPoint(ctx, k); f != nil {
		return f
	}
	return c.messages.Move(ctx)
}

// AddPointToPoint adds the messages of k to those under way.
func (c *pairs) AddPointToPoint(ctx context.Context, k *call.Call) *call.Fault {
	switch k.Kind {
	case call.Send:
		return c.addSend(ctx, k, k.Src, int(k.Root))
	case call.Recv:
		return c.addRecv(ctx, k, int(k.Root))
	}
	src := k.Src
	if len(src) > tuning.HeaderPayload && op.Ptr(src) == op.Ptr(k.Dst) { // what arrives must not replace what has not left
		src = append([]byte(nil), src...)
	}
	if f := c.addSend(ctx, k, src, k.To); f != nil {
		return f
	}
	return c.addRecv(ctx, k, int(k.Root))
}

// pairHash is what the two ends of a message must agree on.
func (c *pairs) pairHash(k *call.Call, count int) uint32 {
	if c.rank.Group.Unchecked() {
		return 1
	}
	return op.Hash(uint64(count), call.Send, k.Type, 0, -1).Sum()
}

func (c *pairs) addSend(ctx context.Context, k *call.Call, src []byte, to int) *call.Fault {
	l, f := c.ends.LinkFor(ctx, to, PointToPoint, len(src))
	if f != nil {
		return f
	}
	h := head{comm: c.rank.Group.ID(), kind: messageData, record: k.Record}
	count := len(src) / max(k.Elem, 1) // k.Count is that of what a SendRecv receives
	h.record.Count, h.record.Hash = uint64(count), c.pairHash(k, count)
	h.record.Place = l.sent
	l.sent++
	s := c.messages.newSender()
	s.start(l, &h, src)
	s.of = k
	if c.rank.Group.Strict() { // the receiver confirms
		l, f := c.ends.Link(ctx, to, confirmations)
		if f != nil {
			return f
		}
		c.messages.newReceiver().start(l, c.confirmation(k, h.record.Place), nil)
	}
	return nil
}

func (c *pairs) addRecv(ctx context.Context, k *call.Call, from int) *call.Fault {
	l, f := c.ends.Link(ctx, from, PointToPoint)
	if f != nil {
		return f
	}
	h := head{comm: c.rank.Group.ID(), kind: messageData, record: k.Record}
	h.record.Hash = c.pairHash(k, len(k.Dst)/max(k.Elem, 1))
	h.record.Place = l.received
	if l.received++; inject.Wrong("links.received") && l.received%8 == 0 {
		l.received++
	}
	r := c.messages.newReceiver()
	r.start(l, h, k.Dst)
	r.of = k
	if c.rank.Group.Strict() {
		l, f := c.ends.Link(ctx, from, confirmations)
		if f != nil {
			return f
		}
		h := c.confirmation(k, h.record.Place)
		s := c.messages.newSender()
		s.start(l, &h, nil)
		s.behind = r
	}
	return nil
}

// confirmation is the header of the message that says a Send was received.
func (c *pairs) confirmation(k *call.Call, place uint64) head {
	h := head{comm: c.rank.Group.ID(), kind: messageData, record: k.Record}
	h.record.Place, h.record.Hash = place, 1
	return h
}
