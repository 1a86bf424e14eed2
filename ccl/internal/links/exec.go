package links

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/internal/algo"
)

// executor runs schedules over links. It owns what a Comm needs for that, so that
// calls allocate nothing once everything has been used once.
type executor struct {
	step  algo.Step
	Tx    []*sender
	Rx    []*receiver
	out   Outgoing // of the point-to-point call under way, or the last
	in    Incoming
	wire  []byte
	slice []int // of the blocks of a slice
	plans map[plan]algo.Schedule

	// The parts of an operand stay where the caller has them until something is written in their place: what is
	// sent of them, and the first reduction, reads them there, which saves a copy of the vector.
	source  call.Vector // no mem: the operand lies in place
	written []bool      // by part
}

type plan struct {
	name string
	kind algo.Kind
	root int
}

// Algorithm names the schedule for a call that spans hosts.
func (c *Links) Algorithm(k *call.Call) string {
	return algo.Choose(call.KindOf(k.Kind), k.Bytes(c.Size()), c.Topo, c.Opt.RankOrder, c.Opt.Table)
}

// schedule builds this rank's schedule for k, or takes it from an earlier call.
func (c *Links) schedule(k *call.Call) (algo.Schedule, *call.Fault) {
	p := plan{c.Algorithm(k), call.KindOf(k.Kind), max(int(k.Root), 0)}
	if s, ok := c.Exec.plans[p]; ok {
		return s, nil
	}
	s, err := algo.Build(p.name, p.kind, c.Topo, c.Rank(), p.root)
	if err != nil {
		return s, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
	}
	if c.Exec.plans == nil || len(c.Exec.plans) >= 64 { // many roots: start anew
		c.Exec.plans = map[plan]algo.Schedule{}
	}
	c.Exec.plans[p] = s
	return s, nil
}

// runFrom runs s on v, in which the operand, src, does not lie yet. A part that nothing was written to stays
// as it was.
func (c *Links) runFrom(ctx context.Context, k *call.Call, s algo.Schedule, src []byte, v call.Vector, slice int) *call.Fault {
	e := &c.Exec
	if call.Ptr(src) != call.Ptr(v.Mem) {
		e.source = v
		e.source.Mem = src
		e.written = append(e.written[:0], make([]bool, s.Parts)...)
	}
	f := c.run(ctx, k, s, v, v, slice)
	e.source.Mem = nil
	return f
}

// operand is where parts lo to hi-1 of v are to be read.
func (e *executor) operand(v *call.Vector, lo, hi int) []byte {
	if e.source.Mem == nil {
		return v.Parts(lo, hi)
	}
	n := 0
	for _, w := range e.written[lo:hi] {
		if w {
			n++
		}
	}
	if n == 0 {
		return e.source.Parts(lo, hi)
	}
	for p := lo; n < hi-lo && p < hi; p++ { // some here and some there
		if !e.written[p] {
			copy(v.Parts(p, p+1), e.source.Parts(p, p+1))
			e.written[p] = true
		}
	}
	return v.Parts(lo, hi)
}

// writes notes that parts lo to hi-1 will be where they belong.
func (e *executor) writes(lo, hi int) {
	if e.source.Mem == nil {
		return
	}
	for p := range e.written[lo:hi] {
		e.written[lo+p] = true
	}
}

// run runs s on this rank: out is what it sends of, in what it receives into.
func (c *Links) run(ctx context.Context, k *call.Call, s algo.Schedule, out, in call.Vector, slice int) *call.Fault {
	e := &c.Exec
	for i := range s.Steps {
		inject.At("cpu.step")
		s.At(i, &e.step)
		e.Tx, e.Rx = e.Tx[:0], e.Rx[:0]
		h := head{comm: c.ID(), kind: messageData, step: uint32(slice), record: c.Entered(0), before: c.Entered(1)}
		h.record.Hash = k.Hash
		for _, m := range e.step.Send {
			l, f := c.Link(ctx, m.Peer, collective)
			if f != nil {
				return f
			}
			c.newSender().start(l, &h, e.operand(&out, m.Lo, m.Hi))
		}
		for _, m := range e.step.Recv {
			l, f := c.Link(ctx, m.Peer, collective)
			if f != nil {
				return f
			}
			r := c.newReceiver()
			r.start(l, h, in.Parts(m.Lo, m.Hi))
			if m.Reduce {
				r.fold, r.elem, r.first, r.own = k.Fold, k.Elem, m.Peer < c.Rank(), e.operand(&in, m.Lo, m.Hi)
				c.inTurn(s.Swap && call.Ptr(r.own) == call.Ptr(r.to), m, r, in)
			}
			e.writes(m.Lo, m.Hi)
		}
		if f := c.Move(ctx, e.Tx, e.Rx); f != nil {
			return f
		}
	}
	return nil
}

// inTurn keeps a reduction back where the same step sends, or another receive
// reduces into, the same place.
func (c *Links) inTurn(swap bool, m algo.Move, r *receiver, v call.Vector) {
	e := &c.Exec
	if swap {
		for i, s := range e.step.Send {
			if s.Lo == m.Lo && s.Hi == m.Hi {
				r.after = e.Tx[i]
			}
		}
	}
	for i, o := range e.step.Recv[:len(e.Rx)-1] {
		if o.Lo < m.Hi && m.Lo < o.Hi {
			r.prev = e.Rx[i]
		}
	}
}

// newSender adds a sender to the step.
func (c *Links) newSender() *sender {
	e := &c.Exec
	if n := len(e.Tx); n < cap(e.Tx) {
		if e.Tx = e.Tx[:n+1]; e.Tx[n] != nil {
			return e.Tx[n]
		}
		e.Tx[n] = new(sender)
		return e.Tx[n]
	}
	e.Tx = append(e.Tx, new(sender))
	return e.Tx[len(e.Tx)-1]
}

// newReceiver adds a receiver to the step.
func (c *Links) newReceiver() *receiver {
	e := &c.Exec
	if n := len(e.Rx); n < cap(e.Rx) {
		if e.Rx = e.Rx[:n+1]; e.Rx[n] != nil {
			return e.Rx[n]
		}
		e.Rx[n] = new(receiver)
		return e.Rx[n]
	}
	e.Rx = append(e.Rx, new(receiver))
	return e.Rx[len(e.Rx)-1]
}
