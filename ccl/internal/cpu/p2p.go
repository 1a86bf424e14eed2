package cpu

import "context"

// Point-to-point calls have a sequence of their own for each ordered pair of ranks,
// and links of their own, so they need not stand in the order of the collectives.

// pointToPoint runs a Send, Recv or SendRecv.
func (c *Comm) pointToPoint(ctx context.Context, k *Call) *Fault {
	e := &c.exec
	e.tx, e.rx = e.tx[:0], e.rx[:0]
	if f := c.addPointToPoint(ctx, k); f != nil {
		return f
	}
	return c.move(ctx, e.tx, e.rx)
}

// addPointToPoint adds the messages of k to those under way.
func (c *Comm) addPointToPoint(ctx context.Context, k *Call) *Fault {
	switch k.Kind {
	case Send:
		return c.addSend(ctx, k, int(k.Root))
	case Recv:
		return c.addRecv(ctx, k, int(k.Root))
	}
	out := *k
	if len(k.Src) > frontMax && ptr(k.Src) == ptr(k.Dst) { // what arrives must not replace what has not left
		out.Src = append([]byte(nil), k.Src...)
	}
	if f := c.addSend(ctx, &out, k.To); f != nil {
		return f
	}
	return c.addRecv(ctx, k, int(k.Root))
}

// pairHash is what the two ends of a message must agree on.
func (c *Comm) pairHash(k *Call, count int) uint32 {
	if c.opt.Unchecked {
		return 1
	}
	p := Call{Record: Record{Count: uint64(count), Kind: Send, Type: k.Type, Root: -1}}
	p.Seal()
	return p.Hash
}

func (c *Comm) addSend(ctx context.Context, k *Call, to int) *Fault {
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
		c.newReceiver().start(l, c.confirmation(k, h.record.Seq), nil)
	}
	return nil
}

func (c *Comm) addRecv(ctx context.Context, k *Call, from int) *Fault {
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
		h := c.confirmation(k, h.record.Seq)
		s := c.newSender()
		s.start(l, &h, nil)
		s.behind = r
	}
	return nil
}

// confirmation is the header of the message that says a Send was received.
func (c *Comm) confirmation(k *Call, seq uint64) head {
	h := head{comm: c.id, kind: messageData, step: 1, record: k.Record}
	h.record.Seq, h.record.Hash = seq, 1
	return h
}

// RunGroup makes calls as one: their point-to-point messages move at once, so a
// send and the receive that crosses it cannot block each other; small
// all-reductions of one type and operator are one exchange.
func (c *Comm) RunGroup(ctx context.Context, calls []*Call) *Fault {
	c.began = c.site.now.Load()
	e := &c.exec
	e.tx, e.rx = e.tx[:0], e.rx[:0]
	for _, k := range calls {
		if k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv {
			if f := c.addPointToPoint(ctx, k); f != nil {
				return f
			}
		}
	}
	if len(e.tx)+len(e.rx) > 0 {
		if f := c.move(ctx, e.tx, e.rx); f != nil {
			return f
		}
	}
	for i := 0; i < len(calls); {
		k := calls[i]
		if k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv {
			i++
			continue
		}
		n := fusible(calls[i:])
		var f *Fault
		if n > 1 {
			f = c.fused(ctx, calls[i:i+n])
		} else {
			f = c.Run(ctx, k)
		}
		if f != nil {
			return f
		}
		i += n
	}
	return nil
}

// fuseMax is how many bytes are put together: above it, a copy costs more than a
// call.
const fuseMax = 64 << 10

// fusible is how many calls from the first on can be one.
func fusible(calls []*Call) int {
	first, bytes, n := calls[0], 0, 0
	for _, k := range calls {
		if k.Kind != AllReduce || k.Type != first.Type || k.Op != first.Op || bytes+len(k.Src) > fuseMax {
			break
		}
		bytes += len(k.Src)
		n++
	}
	return max(n, 1)
}

// fused runs small all-reductions of one type and operator as one. Its hash is that
// of all of them, so it also compares how they were grouped.
func (c *Comm) fused(ctx context.Context, calls []*Call) *Fault {
	one := *calls[0]
	n := 0
	hash := uint32(0)
	for _, k := range calls {
		n += len(k.Src)
		hash = hash*16777619 ^ k.Hash
	}
	if cap(c.exec.fuse) < n {
		c.exec.fuse = aligned(fuseMax)
	}
	buf := c.exec.fuse[:n]
	at := 0
	for _, k := range calls {
		at += copy(buf[at:], k.Src)
	}
	one.Dst, one.Src, one.Count, one.Hash = buf, buf, uint64(n/one.Elem), hash|1
	if f := c.Run(ctx, &one); f != nil {
		return f
	}
	at = 0
	for _, k := range calls {
		at += copy(k.Dst, buf[at:])
	}
	return nil
}
