package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/op"
)

// allReduceInSlots: small vectors lie beside the flags, and everybody adds up all of them.
func (c *Team) allReduceInSlots(ctx context.Context, k *call.Call) *call.Fault {
	n := len(k.Src)
	round, f := c.slots.open(ctx, k, false)
	if f != nil {
		return f
	}
	if c.n != 2 {
		if f := c.slots.place(ctx, k, round, n); f != nil {
			return f
		}
	}
	ordered.Copy(c.slots.at(c.me, round, n), op.Ptr(k.Src), n)
	c.slots.postInline(k, round, n)
	if c.n != 2 {
		if f := c.slots.awaitAll(ctx, k, round); f != nil {
			return f
		}
		return c.sums.foldAll(k, op.Ptr(k.Dst), round, n, zero, nil, n, false)
	}
	if f := c.slots.await(ctx, k, 1-c.me, round); f != nil {
		return f
	}
	c.slots.seen = round
	theirs := c.slots.at(1-c.me, round, n)
	if n >= c.slots.swap {
		ordered.Claim(theirs, n)
	}
	c.sums.foldTwo(k, op.Ptr(k.Dst), op.Ptr(k.Src), theirs, n)
	return nil
}

// allReduce: of vectors too large for that, two ranks add up chunk by chunk, while more ranks each
// reduce one part of a chunk and then collect the parts, unless they can get at each other's
// memory.
func (c *Team) allReduce(ctx context.Context, k *call.Call) *call.Fault {
	if f := c.offers.acquaint(ctx, k); f != nil {
		return f
	}
	length, _ := c.staging.layout(len(k.Src), 1)
	w, ahead, f := c.offers.exchange(ctx, k, k.Src, k.Dst, min(length, len(k.Src)))
	if f != nil {
		return c.mem.Reclaim(k.Dst, f) // others may have all offers
	}
	switch c.offers.allReduceWay(w, len(k.Src)) {
	case direct:
		return c.inPlace.allReduce(ctx, k)
	case readAll:
		return c.allReduceByRead(ctx, k)
	case readHalves:
		return c.allReduceByHalves(ctx, k)
	}
	if c.n == 2 {
		return c.allReduceTwo(ctx, k, length, ahead)
	}
	for at := 0; at < len(k.Src); at += length {
		end := min(at+length, len(k.Src))
		if f := c.reduceParts(ctx, k, k.Src[at:end], k.Dst[at:end], -1, at == 0 && ahead); f != nil {
			return f
		}
	}
	return nil
}

// foldTwo is foldAll for two ranks and n bytes whose lines the caller has claimed, if need be. The
// smallest calls use it.
func (c *sums) foldTwo(k *call.Call, dst, own, theirs unsafe.Pointer, n int) {
	a, b := own, theirs
	if c.me == 1 {
		a, b = b, a
	}
	fold := k.Fold
	if n > c.local.Whole && c.offers.streams(k.Kind, len(k.Dst)) && op.Ptr(k.Dst) != op.Ptr(k.Src) {
		fold = k.Stream
	}
	fold(dst, a, b, n/k.Elem)
	if k.Scale != nil {
		k.Scale(dst, n/k.Elem, 2)
	}
}

// allReduceTwo reduces between two ranks, each of which stages one chunk ahead of
// the one it waits for, so that the flag's way is never waited for; of the first it has been waited for if that
// was staged ahead.
func (c *Team) allReduceTwo(ctx context.Context, k *call.Call, length int, ahead bool) *call.Fault {
	stream := c.offers.streams(call.AllReduce, len(k.Dst)) && op.Ptr(k.Dst) != op.Ptr(k.Src)
	stageNext := func(at int) (uint32, *call.Fault) {
		round, to, f := c.staging.begin(ctx, k, noSlot)
		if f != nil {
			return 0, f
		}
		ordered.Put(to, k.Src[at:min(at+length, len(k.Src))])
		c.slots.post(k, round)
		return round, nil
	}
	next := c.rank.Order.Round
	if !ahead {
		var f *call.Fault
		if next, f = stageNext(0); f != nil {
			return f
		}
	}
	for at := 0; at < len(k.Src); at += length {
		round := next
		if at+length < len(k.Src) {
			var f *call.Fault
			if next, f = stageNext(at + length); f != nil {
				return f
			}
		}
		if f := c.slots.await(ctx, k, 1-c.me, round); f != nil {
			return f
		}
		c.slots.seen = round
		end := min(at+length, len(k.Src))
		if f := c.sums.foldAll(k, op.Ptr(k.Dst[at:]), round, noSlot, zero, op.Ptr(k.Src[at:]), end-at, stream); f != nil {
			return f
		}
	}
	return nil
}

// reduceParts reduces one chunk among three or more ranks: all post it, each
// reduces its part and posts that, and all (root < 0) or root collect the parts.
func (c *Team) reduceParts(ctx context.Context, k *call.Call, src, dst []byte, root int, ahead bool) *call.Fault {
	round := c.rank.Order.Round
	if !ahead { // else all have posted it
		var at unsafe.Pointer
		var f *call.Fault
		if round, at, f = c.staging.begin(ctx, k, noSlot); f != nil {
			return f
		}
		ordered.Put(at, src)
		c.slots.post(k, round)
		if f := c.slots.awaitAll(ctx, k, round); f != nil {
			return f
		}
	}
	from, end := c.staging.part(len(src), c.me)
	sums, to, f := c.staging.begin(ctx, k, noSlot)
	if f != nil {
		return f
	}
	mine := func(int) int { return from }
	if f := c.sums.foldAll(k, unsafe.Add(to, from), round, noSlot, mine, nil, end-from, false); f != nil {
		return f
	}
	c.slots.post(k, sums)
	if root >= 0 && root != c.me {
		return nil
	}
	for i := range c.n {
		r := (c.me + i) % c.n
		if r != c.me {
			if f := c.slots.await(ctx, k, r, sums); f != nil {
				return f
			}
		}
		p, f := c.staging.stage(r, sums)
		if f != nil {
			return f
		}
		from, end := c.staging.part(len(src), r)
		ordered.Get(dst[from:end], unsafe.Add(p, from))
	}
	c.slots.seen = sums
	return nil
}

// reduce: the root reduces what the others post; of large vectors among many
// ranks each reduces a part.
func (c *Team) reduce(ctx context.Context, k *call.Call) *call.Fault {
	root := int(k.Root)
	if c.n == 2 {
		if read, f := c.offers.reads(ctx, k, len(k.Src)); f != nil {
			return f
		} else if read {
			return c.reduceAtRoot(ctx, k, root)
		}
		if c.me != root {
			return c.stream.sendStream(ctx, k, k.Src)
		}
		return c.stream.receiveStream(ctx, k, k.Dst, op.Ptr(k.Src))
	}
	length, inSlot := c.staging.layoutReduced(len(k.Src))
	for i := range call.Pieces(len(k.Src), length) {
		at, end := i*length, min((i+1)*length, len(k.Src))
		var dst []byte
		if c.me == root {
			dst = k.Dst[at:end]
		}
		if inSlot == noSlot {
			if f := c.reduceParts(ctx, k, k.Src[at:end], dst, root, false); f != nil {
				return f
			}
			continue
		}
		round, f := c.slots.open(ctx, k, false)
		if f != nil {
			return f
		}
		var own unsafe.Pointer // the root's operand, unless it is overwritten before it is reduced
		if c.me == root && op.Ptr(k.Dst) != op.Ptr(k.Src) {
			own = op.Ptr(k.Src[at:])
		} else {
			to, f := c.staging.room(ctx, k, round, inSlot)
			if f != nil {
				return f
			}
			ordered.Put(to, k.Src[at:end])
		}
		c.slots.post(k, round)
		if c.me != root {
			continue
		}
		if f := c.slots.awaitAll(ctx, k, round); f != nil {
			return f
		}
		if f := c.sums.foldAll(k, op.Ptr(dst), round, inSlot, zero, own, len(dst), false); f != nil {
			return f
		}
	}
	return nil
}

// reduceScatter: everybody posts a piece of every block, and reduces that of
// its own. Between two ranks the own block need not be posted.
func (c *Team) reduceScatter(ctx context.Context, k *call.Call) *call.Fault {
	blocks := c.n
	if c.n == 2 {
		blocks = 1
	}
	largest := k.Largest()
	length, inSlot := c.staging.layout(largest, blocks)
	if read, f := c.offers.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.reduceScatterByRead(ctx, k)
	}
	for i := range call.Pieces(largest, length) {
		round, to, f := c.staging.begin(ctx, k, inSlot)
		if f != nil {
			return f
		}
		for r := range c.n {
			if blocks > 1 {
				ordered.Put(unsafe.Add(to, r*length), k.Piece(k.Src, r, i*length, length))
			} else if r != c.me {
				ordered.Put(to, k.Piece(k.Src, r, i*length, length))
			}
		}
		c.slots.postInline(k, round, length)
		if f := c.slots.awaitAll(ctx, k, round); f != nil {
			return f
		}
		mine := k.Piece(k.Src, c.me, i*length, length)
		dst := k.Dst[min(i*length, len(k.Dst)):]
		from, own := zero, unsafe.Pointer(nil)
		if blocks > 1 {
			from = func(int) int { return c.me * length }
		} else {
			own = op.Ptr(mine)
		}
		if f := c.sums.foldAll(k, op.Ptr(dst), round, inSlot, from, own, len(mine), false); f != nil {
			return f
		}
	}
	return nil
}
