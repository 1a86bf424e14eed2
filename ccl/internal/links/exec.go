package links

import (
	"context"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// Links run schedules, and the calls of pairs of ranks. Their parts know those before them:
//
//	Ends      the links: pipes inside a host, connections between hosts
//	Messages  the messages that are under way on them
//	Pairs     Send, Recv and SendRecv
//
// What calls need is kept, so that they allocate nothing once everything has been used once.
type Links struct {
	Ends     ends
	Messages messages
	Pairs    pairs

	rank   *plane.Member
	mem    *reach.Reach
	step   algo.Step              // under way
	slice  []int                  // where the blocks of a slice begin
	shares []int32                // of how many operands each part is the share, where a call Weighs
	plans  map[plan]algo.Schedule // for ring
	ring   algo.Topology
	from   operand
	wide   call.Call // the one under way, with elements of 32 bits
}

// Init readies the links of a rank, which gets at the memory of its host by r.
func (c *Links) Init(m *plane.Member, r *reach.Reach, work *call.Workspace) {
	c.rank, c.mem = m, r
	c.Ends = ends{rank: m, made: map[linkKey]*Link{}}
	c.Messages = messages{rank: m, mem: r, ends: &c.Ends}
	c.Pairs = pairs{rank: m, mem: r, ends: &c.Ends, messages: &c.Messages, work: work}
}

// operand is what a schedule reduces. Its parts stay where the caller has them until something is
// written in their place: what is sent of them, and the first reduction, reads them there, which
// saves a copy of the vector.
type operand struct {
	source  call.Vector // no mem: the operand lies in place
	written []bool      // by part
}

type plan struct {
	name string
	kind op.Kind
	root int
}

// Algorithm names the schedule for a call that spans hosts.
func (c *Links) Algorithm(k *call.Call) string {
	g := &c.rank.Group
	bytes := k.Bytes(g.Size())
	if k.Wide != nil {
		bytes *= int64(widening(k.Elem))
	}
	name := algo.Choose(k.Kind.Equal(), bytes, g.Ring(), g.RankOrder(), g.Table())
	if k.Weighs && k.Wide == nil {
		return algo.Even(name, k.Kind.Equal())
	}
	return name
}

// schedule builds this rank's schedule for k, or takes it from an earlier call.
func (c *Links) schedule(ctx context.Context, k *call.Call) (algo.Schedule, *call.Fault) {
	if ring := c.rank.Group.Ring(); ring != c.ring {
		c.plans, c.ring = nil, ring
	}
	p := plan{c.Algorithm(k), k.Kind.Equal(), max(int(k.Root), 0)}
	if s, ok := c.plans[p]; ok {
		return s, nil
	}
	s, err := algo.Build(p.name, p.kind, c.rank.Group.Ring(), c.rank.Group.Rank(), p.root)
	if err != nil {
		return s, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
	}
	if c.plans == nil || len(c.plans) >= 64 { // many roots: start anew
		c.plans = map[plan]algo.Schedule{}
	}
	c.plans[p] = s
	return s, c.connect(ctx, s)
}

// mostAtOnce is how many connections of a schedule are made at once.
const mostAtOnce = 16

// connect makes the connections that s needs, all at once: each takes round trips, and the steps of s, one after
// the other, would wait for those of each. A rank that is not reached is named at once: its neighbors wait for it,
// and so would be named in its place.
func (c *Links) connect(ctx context.Context, s algo.Schedule) *call.Fault {
	var peers []int
	for i := range s.Steps {
		s.At(i, &c.step)
		for _, moves := range [...][]algo.Move{c.step.Send, c.step.Recv} {
			for _, m := range moves {
				if c.Ends.made[linkKey{peer: int32(m.Peer), class: collective}] != nil || c.rank.Group.IsHere(m.Peer) ||
					slices.Contains(peers, m.Peer) {
					continue
				}
				if peers = append(peers, m.Peer); len(peers) > mostAtOnce {
					return nil
				}
			}
		}
	}
	if len(peers) < 2 {
		return nil
	}
	links, errs := make([]*Link, len(peers)), make([]error, len(peers))
	var all sync.WaitGroup
	for i, peer := range peers {
		links[i] = c.Ends.newLink(peer, collective)
		all.Go(func() { errs[i] = c.Ends.dial(ctx, links[i], 0) })
	}
	all.Wait()
	for i, l := range links {
		if errs[i] == nil {
			c.Ends.made[linkKey{peer: int32(peers[i]), class: collective}] = l
		}
	}
	for i, err := range errs {
		if err != nil {
			return c.Ends.notDialed(ctx, peers[i], err)
		}
	}
	return nil
}

// runFrom runs s on v, in which the operand, src, does not lie yet. A part that nothing was written to stays
// as it was.
func (c *Links) runFrom(ctx context.Context, k *call.Call, s algo.Schedule, src []byte,
	v call.Vector, slice int) *call.Fault {
	if op.Ptr(src) != op.Ptr(v.Mem) {
		c.from.source = v
		c.from.source.Mem = src
		c.from.written = append(c.from.written[:0], make([]bool, s.Parts)...)
	}
	f := c.run(ctx, k, s, v, v, slice)
	c.from.source.Mem = nil
	return f
}

// at is where parts lo to hi-1 of v are to be read.
func (o *operand) at(v *call.Vector, lo, hi int) []byte {
	if o.source.Mem == nil {
		return v.Parts(lo, hi)
	}
	n := 0
	for _, w := range o.written[lo:hi] {
		if w {
			n++
		}
	}
	if n == 0 {
		return o.source.Parts(lo, hi)
	}
	for p := lo; n < hi-lo && p < hi; p++ { // some here and some there
		if !o.written[p] {
			copy(v.Parts(p, p+1), o.source.Parts(p, p+1))
			o.written[p] = true
		}
	}
	return v.Parts(lo, hi)
}

// writes notes that parts lo to hi-1 will be where they belong.
func (o *operand) writes(lo, hi int) {
	if o.source.Mem == nil {
		return
	}
	for p := range o.written[lo:hi] {
		o.written[lo+p] = true
	}
}

// run runs s on this rank, which sends from out and receives into in.
func (c *Links) run(ctx context.Context, k *call.Call, s algo.Schedule, out, in call.Vector, slice int) *call.Fault {
	if k.Weighs {
		c.shares = slices.Grow(c.shares[:0], s.Parts)[:s.Parts]
		for p := range c.shares {
			c.shares[p] = 1
		}
	}
	for i := range s.Steps {
		inject.At("cpu.step")
		s.At(i, &c.step)
		c.Messages.Begin()
		h := head{comm: c.rank.Group.ID(), kind: messageData, step: uint32(slice),
			record: c.rank.Order.Entered(0), before: c.rank.Order.Entered(1)}
		h.record.Hash = k.Hash
		for _, m := range c.step.Send {
			part := c.from.at(&out, m.Lo, m.Hi)
			l, f := c.Ends.LinkFor(ctx, m.Peer, collective, len(part))
			if f != nil {
				return f
			}
			if k.Weighs {
				h.shares = c.shares[m.Lo]
			}
			c.Messages.newSender().start(l, &h, part)
		}
		for _, m := range c.step.Recv {
			l, f := c.Ends.Link(ctx, m.Peer, collective)
			if f != nil {
				return f
			}
			r := c.Messages.newReceiver()
			r.start(l, h, in.Parts(m.Lo, m.Hi))
			if m.Reduce {
				r.fold = folding{fn: k.Fold, elem: k.Elem, first: m.Peer < c.rank.Group.Rank(), own: c.from.at(&in, m.Lo, m.Hi)}
				if k.Weighs {
					r.fold.k = k
				}
				c.inTurn(s.Swap && op.Ptr(r.fold.own) == op.Ptr(r.to), m, r)
			}
			if k.Weighs {
				r.shares = c.shares[m.Lo:m.Hi]
			}
			c.from.writes(m.Lo, m.Hi)
		}
		if f := c.Messages.Move(ctx); f != nil {
			return f
		}
	}
	return nil
}

// inTurn keeps a reduction back where the same step sends, or another receive
// reduces into, the same place.
func (c *Links) inTurn(swap bool, m algo.Move, r *receiver) {
	if swap {
		for i, s := range c.step.Send {
			if s.Lo == m.Lo && s.Hi == m.Hi {
				r.after = c.Messages.tx[i]
			}
		}
	}
	for i, o := range c.step.Recv[:len(c.Messages.rx)-1] {
		if o.Lo < m.Hi && m.Lo < o.Hi {
			r.prev = c.Messages.rx[i]
		}
	}
}
