package cpu

import (
	"context"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/internal/algo"
)

// executor runs schedules over links. It owns what a Comm needs for that, so that
// calls allocate nothing once everything has been used once.
type executor struct {
	step  algo.Step
	tx    []*sender
	rx    []*receiver
	out   outgoing // of the point-to-point call under way, or the last
	in    incoming
	wire  []byte
	slice []int // of the blocks of a slice
	plans map[plan]algo.Schedule

	// The parts of an operand stay where the caller has them until something is written in their place: what is
	// sent of them, and the first reduction, reads them there, which saves a copy of the vector.
	source  vector // no mem: the operand lies in place
	written []bool // by part
}

type plan struct {
	name string
	kind algo.Kind
	root int
}

// kindOf is k as the schedules name it.
func kindOf(k Kind) algo.Kind {
	switch k {
	case AllReduce:
		return algo.AllReduce
	case Reduce:
		return algo.Reduce
	case ReduceScatter, ReduceScatterV:
		return algo.ReduceScatter
	case Broadcast:
		return algo.Broadcast
	case AllGather, AllGatherV:
		return algo.AllGather
	case Gather, GatherV:
		return algo.Gather
	case Scatter, ScatterV:
		return algo.Scatter
	case AllToAll, AllToAllV:
		return algo.AllToAll
	}
	return algo.Barrier
}

// bytes is the length of k's whole vector, the same on all ranks.
func (k *Call) bytes(n int) int64 {
	b := int64(k.Count) * int64(k.Elem)
	switch k.Kind {
	case ReduceScatter, AllGather, Gather, Scatter, AllToAll:
		return b * int64(n)
	case AllToAllV: // whose counts only its own rank knows
		return 0
	}
	return b
}

// Algorithm names the schedule for a call that spans hosts.
func (c *Links) algorithm(k *Call) string {
	return algo.Choose(kindOf(k.Kind), k.bytes(c.Size()), c.topo, c.opt.RankOrder, c.opt.Table)
}

// schedule builds this rank's schedule for k, or takes it from an earlier call.
func (c *Links) schedule(k *Call) (algo.Schedule, *Fault) {
	p := plan{c.algorithm(k), kindOf(k.Kind), max(int(k.Root), 0)}
	if s, ok := c.exec.plans[p]; ok {
		return s, nil
	}
	s, err := algo.Build(p.name, p.kind, c.topo, c.rank, p.root)
	if err != nil {
		return s, c.stop(fault(Backend, c.rank, "%w", err))
	}
	if c.exec.plans == nil || len(c.exec.plans) >= 64 { // many roots: start anew
		c.exec.plans = map[plan]algo.Schedule{}
	}
	c.exec.plans[p] = s
	return s, nil
}

// runFrom runs s on v, in which the operand, src, does not lie yet. A part that nothing was written to stays
// as it was.
func (c *Links) runFrom(ctx context.Context, k *Call, s algo.Schedule, src []byte, v vector, slice int) *Fault {
	e := &c.exec
	if ptr(src) != ptr(v.mem) {
		e.source = v
		e.source.mem = src
		e.written = append(e.written[:0], make([]bool, s.Parts)...)
	}
	f := c.run(ctx, k, s, v, v, slice)
	e.source.mem = nil
	return f
}

// operand is where parts lo to hi-1 of v are to be read.
func (e *executor) operand(v *vector, lo, hi int) []byte {
	if e.source.mem == nil {
		return v.parts(lo, hi)
	}
	n := 0
	for _, w := range e.written[lo:hi] {
		if w {
			n++
		}
	}
	if n == 0 {
		return e.source.parts(lo, hi)
	}
	for p := lo; n < hi-lo && p < hi; p++ { // some here and some there
		if !e.written[p] {
			copy(v.parts(p, p+1), e.source.parts(p, p+1))
			e.written[p] = true
		}
	}
	return v.parts(lo, hi)
}

// writes notes that parts lo to hi-1 will be where they belong.
func (e *executor) writes(lo, hi int) {
	if e.source.mem == nil {
		return
	}
	for p := range e.written[lo:hi] {
		e.written[lo+p] = true
	}
}

// run runs s on this rank: out is what it sends of, in what it receives into.
func (c *Links) run(ctx context.Context, k *Call, s algo.Schedule, out, in vector, slice int) *Fault {
	e := &c.exec
	for i := range s.Steps {
		inject.At("cpu.step")
		s.At(i, &e.step)
		e.tx, e.rx = e.tx[:0], e.rx[:0]
		h := head{comm: c.id, kind: messageData, step: uint32(slice), record: c.entered(0), before: c.entered(1)}
		h.record.Hash = k.Hash
		for _, m := range e.step.Send {
			l, f := c.link(ctx, m.Peer, collective)
			if f != nil {
				return f
			}
			c.newSender().start(l, &h, e.operand(&out, m.Lo, m.Hi))
		}
		for _, m := range e.step.Recv {
			l, f := c.link(ctx, m.Peer, collective)
			if f != nil {
				return f
			}
			r := c.newReceiver()
			r.start(l, h, in.parts(m.Lo, m.Hi))
			if m.Reduce {
				r.fold, r.elem, r.first, r.own = k.Fold, k.Elem, m.Peer < c.rank, e.operand(&in, m.Lo, m.Hi)
				c.inTurn(s.Swap && ptr(r.own) == ptr(r.to), m, r, in)
			}
			e.writes(m.Lo, m.Hi)
		}
		if f := c.move(ctx, e.tx, e.rx); f != nil {
			return f
		}
	}
	return nil
}

// inTurn keeps a reduction back where the same step sends, or another receive
// reduces into, the same place.
func (c *Links) inTurn(swap bool, m algo.Move, r *receiver, v vector) {
	e := &c.exec
	if swap {
		for i, s := range e.step.Send {
			if s.Lo == m.Lo && s.Hi == m.Hi {
				r.after = e.tx[i]
			}
		}
	}
	for i, o := range e.step.Recv[:len(e.rx)-1] {
		if o.Lo < m.Hi && m.Lo < o.Hi {
			r.prev = e.rx[i]
		}
	}
}

// newSender adds a sender to the step.
func (c *Links) newSender() *sender {
	e := &c.exec
	if n := len(e.tx); n < cap(e.tx) {
		if e.tx = e.tx[:n+1]; e.tx[n] != nil {
			return e.tx[n]
		}
		e.tx[n] = new(sender)
		return e.tx[n]
	}
	e.tx = append(e.tx, new(sender))
	return e.tx[len(e.tx)-1]
}

// newReceiver adds a receiver to the step.
func (c *Links) newReceiver() *receiver {
	e := &c.exec
	if n := len(e.rx); n < cap(e.rx) {
		if e.rx = e.rx[:n+1]; e.rx[n] != nil {
			return e.rx[n]
		}
		e.rx[n] = new(receiver)
		return e.rx[n]
	}
	e.rx = append(e.rx, new(receiver))
	return e.rx[len(e.rx)-1]
}
