package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// inPlace is an AllReduce that works in the memory of all ranks.
type inPlace struct {
	seat
	slots   *slots
	staging *staging
	offers  *offering
	sums    *sums
	places  []reach.Source // see directly
}

// allReduce: the memory of all ranks can be touched in place. Each rank reduces its part of the
// vector, and writes the result into everybody's memory: every operand is read once, every result
// written once. Where results share their first or last page with something else, their owners
// write: few ranks each reduce all of that; of many, a rank stages what it has reduced of that, and
// the others take it from there. So a rank that was stopped here writes into nothing that cannot be
// replaced: see reclaim.
func (c *inPlace) allReduce(ctx context.Context, k *call.Call) *call.Fault {
	f := c.reduceDirectly(ctx, k)
	clear(c.places) // see Read
	return c.mem.Reclaim(k.Dst, f)
}

func (c *inPlace) reduceDirectly(ctx context.Context, k *call.Call) *call.Fault {
	d := c.directly()
	for r := range c.n {
		if r == c.me {
			d.src[r], d.dst[r] = reach.Own(op.Ptr(k.Src)), reach.Own(op.Ptr(k.Dst))
			continue
		}
		var f *call.Fault
		if d.src[r], f = c.mem.Find(r, &c.offers.posted[r].src); f != nil {
			return f
		}
		if d.dst[r], f = c.mem.Find(r, &c.offers.posted[r].dst); f != nil {
			return f
		}
	}
	lead, tail := c.edges(len(k.Src), k.Elem)
	alone := lead+tail == 0 || c.n <= tuning.EdgesAlone && lead+tail <= tuning.EdgesAloneTo // each rank reduces all edges
	round, f := c.slots.open(ctx, k, !alone)
	if f != nil {
		return f
	}
	from, end := c.staging.part(len(k.Src), c.me)
	inner := len(k.Src) - tail
	var edges []byte
	if alone {
		edges = c.mem.Scratch[tuning.ReadPiece:][:lead+tail]
		if f = c.reduceInto(ctx, edges[:lead], k, d, 0); f == nil {
			f = c.reduceInto(ctx, edges[lead:], k, d, inner)
		}
	} else {
		f = c.stageEdges(ctx, k, d, round, from, end, lead, tail)
	}
	if f != nil {
		return f
	}
	if f = c.mem.MayTouch(); f == nil {
		f = c.directPart(ctx, k, max(from, lead), min(end, inner))
	}
	c.mem.Touched()
	if f != nil {
		return f
	}
	c.slots.post(k, round)
	if f = c.slots.awaitAll(ctx, k, round); f != nil {
		return f
	}
	if !alone {
		return c.takeEdges(k, round, lead, tail)
	}
	// The others have read what lay there, if the call is in place.
	copy(k.Dst, edges[:lead])
	copy(k.Dst[inner:], edges[lead:])
	return nil
}

// directly is where a call finds all operands and results, by rank.
type directly struct{ src, dst []reach.Source }

// directly is room for that, which is kept.
func (c *inPlace) directly() directly {
	if len(c.places) != 2*c.n {
		c.places = make([]reach.Source, 2*c.n)
	}
	return directly{c.places[:c.n], c.places[c.n:]}
}

// edges is how many bytes at the beginning and at the end of an AllReduce of n bytes some rank's result has in a page
// that is not its own alone, in whole elements.
func (c *inPlace) edges(n, elem int) (lead, tail int) {
	if c.mem.Known.All {
		return 0, 0
	}
	for r := range c.n {
		l, t := c.offers.posted[r].dst.Edges(n)
		lead, tail = max(lead, l), max(tail, t)
	}
	lead, tail = (lead+elem-1)/elem*elem, (tail+elem-1)/elem*elem
	if lead+tail > n {
		return n, 0
	}
	return lead, tail
}

// stageEdges reduces what of this rank's part, which goes from from to end, lies in the edges, and stages it for the
// others.
func (c *inPlace) stageEdges(ctx context.Context, k *call.Call, d directly,
	round uint32, from, end, lead, tail int) *call.Fault {
	to, f := c.staging.stage(c.me, round)
	if f != nil {
		return f
	}
	inner := len(k.Src) - tail
	if at := min(end, lead); from < at {
		f = c.reduceInto(ctx, unsafe.Slice((*byte)(unsafe.Add(to, from)), at-from), k, d, from)
	}
	if at := max(from, inner); f == nil && at < end {
		f = c.reduceInto(ctx, unsafe.Slice((*byte)(unsafe.Add(to, lead+at-inner)), end-at), k, d, at)
	}
	return f
}

// takeEdges copies what all ranks have reduced of the edges.
func (c *inPlace) takeEdges(k *call.Call, round uint32, lead, tail int) *call.Fault {
	inner := len(k.Src) - tail
	for i := range c.n {
		r := (c.me + i) % c.n
		from, end := c.staging.part(len(k.Src), r)
		if from >= lead && end <= inner {
			continue
		}
		staged, f := c.staging.stage(r, round)
		if f != nil {
			return f
		}
		if last := min(end, lead); from < last {
			ordered.Get(k.Dst[from:last], unsafe.Add(staged, from))
		}
		if at := max(from, inner); at < end {
			ordered.Get(k.Dst[at:end], unsafe.Add(staged, lead+at-inner))
		}
	}
	return nil
}

// directPart reduces this rank's part for all, from from to end, piece by piece, in the places that are known.
func (c *inPlace) directPart(ctx context.Context, k *call.Call, from, end int) *call.Fault {
	move := reduce.Copy
	stream := 2*c.n*len(k.Src) >= tuning.StreamInPlaceFrom && !c.offers.someInPlace()
	if stream {
		move = reduce.Stream
	}
	for at := from; at < end; {
		inject.At("cpu.write")
		// One piece of work between two points of preemption.
		stop := min(at+tuning.DirectPieces*tuning.FoldPiece, end)
		f := c.mem.Read(ctx, c.places, 0, nil, 0, func(all []unsafe.Pointer) {
			c.directPieces(k, all[:c.n], all[c.n:], at, stop, move, stream)
		})
		if f != nil {
			return f
		}
		at = stop
	}
	return nil
}

// directPieces reduces from at to end into the results of all.
//
//go:noinline
func (c *inPlace) directPieces(k *call.Call, src, dst []unsafe.Pointer, at, end int,
	move func(dst, src unsafe.Pointer, n int), stream bool) {
	if stream && c.n == 2 && k.Both != nil && k.Scale == nil {
		// Reads and stores of one loop run side by side; those of two, by way of scratch memory, in turn.
		k.Both(unsafe.Add(dst[c.me], at), unsafe.Add(dst[1-c.me], at),
			unsafe.Add(src[0], at), unsafe.Add(src[1], at), (end-at)/k.Elem)
		return
	}
	scratch := unsafe.Pointer(&c.mem.Scratch[0])
	for ; at < end; at += tuning.FoldPiece {
		m := min(tuning.FoldPiece, end-at)
		// The sum goes to scratch memory, which stays in L1, and from there to all: in place the
		// operands must stay until the last has been added.
		to := scratch
		if !stream && c.n == 2 {
			to = unsafe.Add(dst[c.me], at)
		}
		c.reducePiece(k, src, at, to, m)
		for i := range c.n {
			if r := (c.me + i) % c.n; unsafe.Add(dst[r], at) != to {
				move(unsafe.Add(dst[r], at), to, m)
			}
		}
	}
}

// reducePiece reduces m bytes of all operands, from at on, into to.
func (c *inPlace) reducePiece(k *call.Call, src []unsafe.Pointer, at int, to unsafe.Pointer, m int) {
	if k.SumsAll(c.n) {
		srcs := c.sums.operands(c.n)
		for r := range srcs {
			srcs[r] = unsafe.Add(src[r], at)
		}
		k.SumAll(to, srcs, m)
		return
	}
	a := unsafe.Add(src[0], at)
	for r := 1; r < c.n; r++ {
		k.Fold(to, a, unsafe.Add(src[r], at), m/k.Elem)
		a = to
	}
	if k.Scale != nil {
		k.Scale(to, m/k.Elem, c.n)
	}
}

// reduceInto reduces what lies at at in all operands into to.
func (c *inPlace) reduceInto(ctx context.Context, to []byte, k *call.Call, d directly, at int) *call.Fault {
	if len(to) == 0 {
		return nil
	}
	return c.mem.Read(ctx, d.src, 0, nil, 0, func(src []unsafe.Pointer) {
		for i := 0; i < len(to); i += tuning.FoldPiece {
			c.reducePiece(k, src, at+i, unsafe.Pointer(&to[i]), min(tuning.FoldPiece, len(to)-i))
		}
	})
}

// allReduceByRead: two ranks, each reads all of the other's operand, a piece at a time, and adds it.
func (c *Team) allReduceByRead(ctx context.Context, k *call.Call) *call.Fault {
	if f := c.sums.reduceByRead(ctx, k, k.Dst, 0); f != nil {
		return f
	}
	return c.slots.barrier(ctx, k)
}

// allReduceByHalves: each rank reduces its part of the vector from what it reads of the others' operands, and then
// reads the parts that the others have reduced. Works in place: a rank overwrites only its own part, which
// the others do not read before it is done.
func (c *Team) allReduceByHalves(ctx context.Context, k *call.Call) *call.Fault {
	from, end := c.staging.part(len(k.Src), c.me)
	if f := c.sums.reduceByRead(ctx, k, k.Dst[from:end], from); f != nil {
		return f
	}
	if f := c.slots.barrier(ctx, k); f != nil {
		return f
	}
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		from, end := c.staging.part(len(k.Src), r)
		if f := c.mem.Fill(ctx, r, &c.offers.posted[r].dst, from, k.Dst[from:end]); f != nil {
			return f
		}
	}
	return c.slots.barrier(ctx, k)
}
