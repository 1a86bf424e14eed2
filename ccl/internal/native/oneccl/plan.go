package oneccl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/op"
)

// what says which function a step calls. call.c has the same list.
type what int32

const (
	allReduce what = iota
	reduce
	broadcast
	reduceScatter
	allGather
	allToAll
	allToAllV
	scatter
	send
	recv
	move // from src to dst within this rank
)

// step is one call of the library. Its layout is that of goneccl_step in call.h.
type step struct {
	what     what
	typ, op  int32
	peer     int32 // or root
	count    uintptr
	dst, src uintptr
	dc, sc   uintptr // allToAllV: where in counts its counts begin
}

// plan is what the library is to do for some calls, on one rank: every call of the API as steps that
// every version of oneCCL has, or that this one was found to have.
type plan struct {
	rank, size   int
	hasScatter   bool
	hasAllToAllV bool

	steps  []step
	counts []uintptr
	need   uintptr // bytes of scratch memory
	fixDst []int   // steps whose dst, or src, is an offset into scratch memory
	fixSrc []int
	msgs   []message
}

// message is one send or receive among those that are exchanged together.
type message struct {
	peer    int
	out     bool
	scratch bool
	addr    uintptr
	count   uintptr
	typ     int32
	size    uintptr // of an element
}

// make plans calls: their messages first, as the CPU engine does, then the others in order.
func (p *plan) make(calls []*op.Call) error {
	p.steps, p.counts, p.msgs = p.steps[:0], p.counts[:0], p.msgs[:0]
	p.fixDst, p.fixSrc, p.need = p.fixDst[:0], p.fixSrc[:0], 0
	for i := range calls {
		p.messages(calls[i])
	}
	if err := p.exchange(); err != nil {
		return err
	}
	for i := range calls {
		if err := p.collective(calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// place gives the steps that use scratch memory its address.
func (p *plan) place(scratch uintptr) {
	for _, i := range p.fixDst {
		p.steps[i].dst += scratch
	}
	for _, i := range p.fixSrc {
		p.steps[i].src += scratch
	}
}

// set takes bytes of scratch memory.
func (p *plan) set(bytes uintptr) (at uintptr) {
	at = p.need
	p.need += (bytes + 63) &^ 63
	return at
}

// aside copies bytes to scratch memory.
func (p *plan) aside(src, bytes uintptr) (at uintptr) {
	at = p.set(bytes)
	p.fixDst = append(p.fixDst, len(p.steps))
	p.add(step{what: move, dst: at, src: src, count: bytes})
	return at
}

func (p *plan) add(s step) { p.steps = append(p.steps, s) }

// in adds a message of c that comes from a rank.
func (p *plan) in(c *op.Call, peer, count int, addr uintptr) {
	p.msgs = append(p.msgs, message{peer: peer, addr: addr, count: uintptr(count), typ: carrier(c.Type),
		size: sizeOf(c.Type)})
}

// out adds one that goes to a rank, from scratch memory or not.
func (p *plan) out(c *op.Call, peer, count int, addr uintptr, scratch bool) {
	p.in(c, peer, count, addr)
	m := &p.msgs[len(p.msgs)-1]
	m.out, m.scratch = true, scratch
}

// messages notes what Send, Recv and SendRecv exchange.
func (p *plan) messages(c *op.Call) {
	switch c.Kind {
	case op.Send:
		p.out(c, int(c.Root), int(c.Count), c.SrcAt, false)
	case op.Recv:
		p.in(c, int(c.Root), int(c.Count), c.DstAt)
	case op.SendRecv:
		src, scratch := c.SrcAt, false
		if alone := int(c.Root) == p.rank && c.To == p.rank; c.DstAt == c.SrcAt && c.SrcN > 0 && c.Count > 0 && !alone {
			// What comes may come before what is there has left.
			src, scratch = p.aside(c.SrcAt, uintptr(c.SrcN)*sizeOf(c.Type)), true
		}
		p.out(c, c.To, c.SrcN, src, scratch)
		p.in(c, int(c.Root), int(c.Count), c.DstAt)
	}
}

var errSelf = errors.New("a message of a rank to itself needs a Send and a Recv of the same size in one call or group")

// exchange adds the steps of msgs, none of which can wait for ever, although each is done before the next begins:
// pairs of ranks meet in rounds, in round (a+b) mod n, where no rank has two of them. The pair in the
// lowest round that is not done has nothing to wait for but each other; it starts with what the lower
// rank sends.
func (p *plan) exchange() error {
	round := func(m message) int { return (p.rank + m.peer) % p.size }
	slices.SortStableFunc(p.msgs, func(a, b message) int {
		if c := cmp.Compare(round(a), round(b)); c != 0 || a.out == b.out {
			return c
		}
		if a.out == (p.rank < a.peer) {
			return -1
		}
		return 1
	})
	for i := 0; i < len(p.msgs); {
		j := i
		for j < len(p.msgs) && p.msgs[j].peer == p.msgs[i].peer {
			j++
		}
		if p.msgs[i].peer == p.rank {
			if err := p.self(p.msgs[i:j]); err != nil {
				return err
			}
		} else {
			for _, m := range p.msgs[i:j] {
				p.message(m)
			}
		}
		i = j
	}
	p.msgs = p.msgs[:0]
	return nil
}

// message adds one send or receive. A message without content is known to both ranks, and none is sent.
func (p *plan) message(m message) {
	if m.count == 0 {
		return
	}
	s := step{what: recv, typ: m.typ, peer: int32(m.peer), count: m.count, dst: m.addr}
	if m.out {
		s.what, s.dst, s.src = send, 0, m.addr
		if m.scratch {
			p.fixSrc = append(p.fixSrc, len(p.steps))
		}
	}
	p.add(s)
}

// self copies this rank's messages to itself: of msgs, the first half is received, the second sent.
func (p *plan) self(msgs []message) error {
	half := len(msgs) / 2
	for i := range half {
		in, out := msgs[i], msgs[half+i]
		if len(msgs)%2 != 0 || in.out || !out.out || in.count*in.size != out.count*out.size {
			return errSelf
		}
		if in.count == 0 || in.addr == out.addr && !out.scratch {
			continue
		}
		if out.scratch {
			p.fixSrc = append(p.fixSrc, len(p.steps))
		}
		p.add(step{what: move, dst: in.addr, src: out.addr, count: in.count * in.size})
	}
	if len(msgs)%2 != 0 {
		return errSelf
	}
	return nil
}

// collective adds the steps of a call that is no message.
func (p *plan) collective(c *op.Call) error {
	size, count := sizeOf(c.Type), uintptr(c.Count)
	s := step{typ: carrier(c.Type), peer: c.Root, count: count, dst: c.DstAt, src: c.SrcAt}
	if c.Kind.Reduces() {
		typ, redop, ok := arithmetic(c.Type, c.Op)
		if !ok {
			return fmt.Errorf("oneCCL does not reduce type %d with operator %d", c.Type, c.Op)
		}
		s.typ, s.op = typ, redop
	}
	whole := func(w what) {
		if s.what = w; s.count > 0 {
			p.add(s)
		}
	}
	switch c.Kind {
	case op.AllReduce:
		whole(allReduce)
	case op.Reduce:
		p.reduce(s)
	case op.Broadcast:
		if s.dst == 0 {
			s.dst = s.src
		}
		s.src = s.dst
		whole(broadcast)
	case op.ReduceScatter:
		whole(reduceScatter)
	case op.AllGather:
		whole(allGather)
	case op.AllToAll:
		whole(allToAll)
	case op.ReduceScatterV:
		at := c.SrcAt
		for r, n := range c.DC {
			s.peer, s.count, s.src, s.dst = int32(r), uintptr(n), at, c.DstAt
			p.reduce(s)
			at += uintptr(n) * size
		}
	case op.AllGatherV:
		at := c.DstAt
		for r, n := range c.DC {
			s.peer, s.count, s.src, s.dst = int32(r), uintptr(n), at, at
			if r == p.rank {
				s.src = c.SrcAt
			}
			whole(broadcast)
			at += uintptr(n) * size
		}
	case op.Gather, op.GatherV:
		return p.gather(c)
	case op.Scatter:
		if !p.hasScatter {
			return p.scatter(c)
		}
		if p.rank != int(c.Root) {
			s.src = s.dst // it is not looked at, but must not be null
		} else if s.dst == 0 {
			s.dst = s.src + uintptr(p.rank)*count*size
		}
		whole(scatter)
	case op.ScatterV:
		return p.scatter(c)
	case op.AllToAllV:
		return p.allToAllV(c, s, size)
	case op.Barrier:
		// A barrier is the sum of nothing much: no rank has it before all have come.
		at := p.set(1)
		p.fixDst, p.fixSrc = append(p.fixDst, len(p.steps)), append(p.fixSrc, len(p.steps))
		p.add(step{what: allReduce, typ: carrier(op.Uint8), count: 1, dst: at, src: at})
	case op.Send, op.Recv, op.SendRecv: // messages, which come first
	default:
		return fmt.Errorf("oneCCL has no calls of kind %d", c.Kind)
	}
	return nil
}

// reduce adds a Reduce. Off the root there is no dst, but 2021.17 refuses null; what it is given it leaves alone.
func (p *plan) reduce(s step) {
	if int(s.peer) != p.rank {
		s.dst = s.src
	}
	if s.what = reduce; s.count > 0 {
		p.add(s)
	}
}

// block is how many elements rank r gives in a Gather or GatherV, or gets in a Scatter or ScatterV.
func block(c *op.Call, r int) int {
	if len(c.DC) > 0 {
		return c.DC[r]
	}
	return int(c.Count)
}

// gather adds Gather and GatherV.
func (p *plan) gather(c *op.Call) error {
	at := c.DstAt
	for r := 0; r < p.size && p.rank == int(c.Root); r++ {
		p.in(c, r, block(c, r), at)
		at += uintptr(block(c, r)) * sizeOf(c.Type)
	}
	p.out(c, int(c.Root), block(c, p.rank), c.SrcAt, false)
	return p.exchange()
}

// scatter adds Scatter and ScatterV.
func (p *plan) scatter(c *op.Call) error {
	at := c.SrcAt
	for r := 0; r < p.size && p.rank == int(c.Root); r++ {
		p.out(c, r, block(c, r), at, false)
		at += uintptr(block(c, r)) * sizeOf(c.Type)
	}
	p.in(c, int(c.Root), block(c, p.rank), c.DstAt)
	return p.exchange()
}

// allToAllV adds the library's own, or the exchange of all pairs.
func (p *plan) allToAllV(c *op.Call, s step, size uintptr) error {
	var bytes uintptr
	for _, n := range c.SC {
		bytes += uintptr(n) * size
	}
	src, scratch := c.SrcAt, false
	if c.SrcAt == c.DstAt && bytes > 0 {
		src, scratch = p.aside(c.SrcAt, bytes), true
	}
	if p.hasAllToAllV {
		s.what, s.src = allToAllV, src
		for _, n := range c.DC {
			p.counts = append(p.counts, uintptr(n))
		}
		for _, n := range c.SC {
			p.counts = append(p.counts, uintptr(n))
		}
		s.sc = uintptr(len(p.counts) - p.size)
		s.dc = s.sc - uintptr(p.size)
		if scratch {
			p.fixSrc = append(p.fixSrc, len(p.steps))
		}
		p.add(s)
		return nil
	}
	in, out := c.DstAt, src
	for r := range p.size {
		p.in(c, r, c.DC[r], in)
		p.out(c, r, c.SC[r], out, scratch)
		in += uintptr(c.DC[r]) * size
		out += uintptr(c.SC[r]) * size
	}
	return p.exchange()
}
