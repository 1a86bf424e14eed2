package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/reach"
)

// allReduce: small vectors lie beside the flags and everybody adds up all of
// them; two ranks do the same chunk by chunk; more ranks each reduce one part of a chunk and then collect the parts.
func (c *Team) allReduce(ctx context.Context, k *call.Call) *call.Fault {
	if len(k.Src) <= c.Local.Whole {
		round, f := c.open(ctx, k, false)
		if f != nil {
			return f
		}
		if f := c.place(ctx, k, round, len(k.Src)); f != nil {
			return f
		}
		reach.Put(c.Local.Payload(c.holder(c.Me, round, len(k.Src)), round, len(k.Src)), k.Src)
		c.postInline(k, round, len(k.Src))
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		if c.N == 2 {
			theirs := c.Local.Payload(c.holder(1-c.Me, round, len(k.Src)), round, len(k.Src))
			if c.swaps(len(k.Src)) {
				ordered.Claim(theirs, len(k.Src))
			}
			c.foldTwo(k, call.Ptr(k.Dst), call.Ptr(k.Src), theirs, len(k.Dst))
			return nil
		}
		return c.foldAll(k, call.Ptr(k.Dst), round, len(k.Dst), zero, nil, len(k.Dst), false)
	}
	if f := c.acquaint(ctx, k); f != nil {
		return f
	}
	length, _ := c.Layout(len(k.Src), 1)
	w, ahead, f := c.exchange(ctx, k, k.Src, k.Dst, min(length, len(k.Src)))
	if f != nil {
		return c.Reclaim(k.Dst, f) // others may have all offers
	}
	switch c.allReduceWay(w, len(k.Src)) {
	case direct:
		return c.directAllReduce(ctx, k)
	case readAll:
		return c.allReduceByRead(ctx, k)
	case readHalves:
		return c.allReduceByHalves(ctx, k)
	}
	if c.N == 2 {
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

// allReduceTwo reduces between two ranks, each of which stages one chunk ahead of
// the one it waits for, so that the flag's way is never waited for; of the first it has been waited for if that
// was staged ahead.
func (c *Team) allReduceTwo(ctx context.Context, k *call.Call, length int, ahead bool) *call.Fault {
	stream := c.streams(call.AllReduce, len(k.Dst)) && call.Ptr(k.Dst) != call.Ptr(k.Src)
	stageNext := func(at int) (uint32, *call.Fault) {
		round, to, f := c.begin(ctx, k, NoSlot)
		if f != nil {
			return 0, f
		}
		reach.Put(to, k.Src[at:min(at+length, len(k.Src))])
		c.post(k, round)
		return round, nil
	}
	next := c.Round
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
		if f := c.await(ctx, k, 1-c.Me, round); f != nil {
			return f
		}
		c.seen = round
		end := min(at+length, len(k.Src))
		if f := c.foldAll(k, call.Ptr(k.Dst[at:]), round, NoSlot, zero, call.Ptr(k.Src[at:]), end-at, stream); f != nil {
			return f
		}
	}
	return nil
}

// reduceParts reduces one chunk among three or more ranks: all post it, each
// reduces its part and posts that, and all (root < 0) or root collect the parts.
func (c *Team) reduceParts(ctx context.Context, k *call.Call, src, dst []byte, root int, ahead bool) *call.Fault {
	round := c.Round
	if !ahead { // else all have posted it
		var at unsafe.Pointer
		var f *call.Fault
		if round, at, f = c.begin(ctx, k, NoSlot); f != nil {
			return f
		}
		reach.Put(at, src)
		c.post(k, round)
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
	}
	from, end := c.part(len(src), c.Me)
	sums, to, f := c.begin(ctx, k, NoSlot)
	if f != nil {
		return f
	}
	mine := func(int) int { return from }
	if f := c.foldAll(k, unsafe.Add(to, from), round, NoSlot, mine, nil, end-from, false); f != nil {
		return f
	}
	c.post(k, sums)
	if root >= 0 && root != c.Me {
		return nil
	}
	for i := range c.N {
		r := (c.Me + i) % c.N
		if r != c.Me {
			if f := c.await(ctx, k, r, sums); f != nil {
				return f
			}
		}
		p, f := c.stage(r, sums)
		if f != nil {
			return f
		}
		from, end := c.part(len(src), r)
		reach.Get(dst[from:end], unsafe.Add(p, from))
	}
	c.seen = sums
	return nil
}

// reduce: the root reduces what the others post; of large vectors among many
// ranks each reduces a part.
func (c *Team) reduce(ctx context.Context, k *call.Call) *call.Fault {
	root := int(k.Root)
	if c.N == 2 {
		if read, f := c.reads(ctx, k, len(k.Src)); f != nil {
			return f
		} else if read {
			return c.reduceAtRoot(ctx, k, root)
		}
		if c.Me != root {
			return c.sendStream(ctx, k, k.Src)
		}
		return c.receiveStream(ctx, k, k.Dst, call.Ptr(k.Src))
	}
	length, inSlot := c.LayoutReduced(len(k.Src))
	for i := range call.Pieces(len(k.Src), length) {
		at, end := i*length, min((i+1)*length, len(k.Src))
		var dst []byte
		if c.Me == root {
			dst = k.Dst[at:end]
		}
		if inSlot == NoSlot {
			if f := c.reduceParts(ctx, k, k.Src[at:end], dst, root, false); f != nil {
				return f
			}
			continue
		}
		round, f := c.open(ctx, k, false)
		if f != nil {
			return f
		}
		var own unsafe.Pointer // the root's operand, unless it is overwritten before it is reduced
		if c.Me == root && call.Ptr(k.Dst) != call.Ptr(k.Src) {
			own = call.Ptr(k.Src[at:])
		} else {
			to, f := c.room(ctx, k, round, inSlot)
			if f != nil {
				return f
			}
			reach.Put(to, k.Src[at:end])
		}
		c.post(k, round)
		if c.Me != root {
			continue
		}
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		if f := c.foldAll(k, call.Ptr(dst), round, inSlot, zero, own, len(dst), false); f != nil {
			return f
		}
	}
	return nil
}

// reduceScatter: everybody posts a piece of every block, and reduces that of
// its own. Between two ranks the own block need not be posted.
func (c *Team) reduceScatter(ctx context.Context, k *call.Call) *call.Fault {
	blocks := c.N
	if c.N == 2 {
		blocks = 1
	}
	largest := k.Largest()
	length, inSlot := c.Layout(largest, blocks)
	if read, f := c.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.reduceScatterByRead(ctx, k)
	}
	for i := range call.Pieces(largest, length) {
		round, to, f := c.begin(ctx, k, inSlot)
		if f != nil {
			return f
		}
		for r := range c.N {
			if blocks > 1 {
				reach.Put(unsafe.Add(to, r*length), k.Piece(k.Src, r, i*length, length))
			} else if r != c.Me {
				reach.Put(to, k.Piece(k.Src, r, i*length, length))
			}
		}
		c.postInline(k, round, length)
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		mine := k.Piece(k.Src, c.Me, i*length, length)
		dst := k.Dst[min(i*length, len(k.Dst)):]
		from, own := zero, unsafe.Pointer(nil)
		if blocks > 1 {
			from = func(int) int { return c.Me * length }
		} else {
			own = call.Ptr(mine)
		}
		if f := c.foldAll(k, call.Ptr(dst), round, inSlot, from, own, len(mine), false); f != nil {
			return f
		}
	}
	return nil
}
