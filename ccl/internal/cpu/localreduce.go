package cpu

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// put copies src beside or to where rank me's data of round lies.
func put(to unsafe.Pointer, src []byte) {
	ordered.Copy(to, ptr(src), len(src))
}

func get(dst []byte, from unsafe.Pointer) {
	ordered.Copy(ptr(dst), from, len(dst))
}

// receive is get of what another rank has staged, in a call in which all post and all read where bothWays is set: of
// two ranks the reader writes there next, so it takes the lines as its own.
func (c *Team) receive(dst []byte, from unsafe.Pointer, bothWays bool) {
	if c.n != 2 || !bothWays {
		get(dst, from)
		return
	}
	n := len(dst)
	ordered.Claim(from, min(tuning.ClaimPiece, n))
	for at := 0; at < n; at += tuning.ClaimPiece {
		if next := at + tuning.ClaimPiece; next < n {
			ordered.Claim(unsafe.Add(from, next), min(tuning.ClaimPiece, n-next))
		}
		get(dst[at:min(at+tuning.ClaimPiece, n)], unsafe.Add(from, at))
	}
}

// localAllReduce: small vectors lie beside the flags and everybody adds up all of
// them; two ranks do the same chunk by chunk; more ranks each reduce one part of
// a chunk and then collect the parts.
func (c *Team) localAllReduce(ctx context.Context, k *Call) *Fault {
	if len(k.Src) <= c.local.whole {
		round, f := c.open(ctx, k, false)
		if f != nil {
			return f
		}
		put(c.local.payload(c.me, round, len(k.Src)), k.Src)
		c.postInline(k, round, len(k.Src))
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		if c.n == 2 {
			c.foldTwo(k, ptr(k.Dst), ptr(k.Src), c.local.payload(1-c.me, round, len(k.Src)), len(k.Dst))
			return nil
		}
		return c.foldAll(k, ptr(k.Dst), round, len(k.Dst), zero, nil, len(k.Dst), false)
	}
	if f := c.acquaint(ctx, k); f != nil {
		return f
	}
	length, _ := c.layout(len(k.Src), 1)
	w, ahead, f := c.exchange(ctx, k, k.Src, k.Dst, min(length, len(k.Src)))
	if f != nil {
		return c.reclaim(k.Dst, f) // others may have all offers
	}
	switch c.allReduceWay(w, len(k.Src)) {
	case direct:
		return c.directAllReduce(ctx, k)
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

// foldTwo is foldAll of two ranks for n bytes that are not staged in turn: what the smallest calls do.
func (c *Team) foldTwo(k *Call, dst, own, theirs unsafe.Pointer, n int) {
	a, b := own, theirs
	if c.me == 1 {
		a, b = b, a
	}
	fold := k.Fold
	if n > c.local.inline && streams(k.Kind, len(k.Dst)) && ptr(k.Dst) != ptr(k.Src) {
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
func (c *Team) allReduceTwo(ctx context.Context, k *Call, length int, ahead bool) *Fault {
	stream := streams(AllReduce, len(k.Dst)) && ptr(k.Dst) != ptr(k.Src)
	stageNext := func(at int) (uint32, *Fault) {
		round, to, f := c.begin(ctx, k, noSlot)
		if f != nil {
			return 0, f
		}
		put(to, k.Src[at:min(at+length, len(k.Src))])
		c.post(k, round)
		return round, nil
	}
	next := c.round
	if !ahead {
		var f *Fault
		if next, f = stageNext(0); f != nil {
			return f
		}
	}
	for at := 0; at < len(k.Src); at += length {
		round := next
		if at+length < len(k.Src) {
			var f *Fault
			if next, f = stageNext(at + length); f != nil {
				return f
			}
		}
		if f := c.await(ctx, k, 1-c.me, round); f != nil {
			return f
		}
		c.seen = round
		end := min(at+length, len(k.Src))
		if f := c.foldAll(k, ptr(k.Dst[at:]), round, noSlot, zero, ptr(k.Src[at:]), end-at, stream); f != nil {
			return f
		}
	}
	return nil
}

// part r of n bytes among the ranks of the host, in whole cache lines.
func (c *Team) part(n, r int) (from, to int) {
	q := ((n+c.n-1)/c.n + 63) &^ 63
	return min(r*q, n), min((r+1)*q, n)
}

// reduceParts reduces one chunk among three or more ranks: all post it, each
// reduces its part and posts that, and all (root < 0) or root collect the parts.
func (c *Team) reduceParts(ctx context.Context, k *Call, src, dst []byte, root int, ahead bool) *Fault {
	round := c.round
	if !ahead { // else all have posted it
		var at unsafe.Pointer
		var f *Fault
		if round, at, f = c.begin(ctx, k, noSlot); f != nil {
			return f
		}
		put(at, src)
		c.post(k, round)
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
	}
	from, end := c.part(len(src), c.me)
	sums, to, f := c.begin(ctx, k, noSlot)
	if f != nil {
		return f
	}
	mine := func(int) int { return from }
	if f := c.foldAll(k, unsafe.Add(to, from), round, noSlot, mine, nil, end-from, false); f != nil {
		return f
	}
	c.post(k, sums)
	if root >= 0 && root != c.me {
		return nil
	}
	for i := range c.n {
		r := (c.me + i) % c.n
		if r != c.me {
			if f := c.await(ctx, k, r, sums); f != nil {
				return f
			}
		}
		p, f := c.stage(r, sums)
		if f != nil {
			return f
		}
		from, end := c.part(len(src), r)
		get(dst[from:end], unsafe.Add(p, from))
	}
	c.seen = sums
	return nil
}

// localReduce: the root reduces what the others post; of large vectors among many
// ranks each reduces a part.
func (c *Team) localReduce(ctx context.Context, k *Call) *Fault {
	root := int(k.Root)
	if c.n == 2 {
		if read, f := c.reads(ctx, k, len(k.Src)); f != nil {
			return f
		} else if read {
			return c.reduceAtRoot(ctx, k, root)
		}
		if c.me != root {
			return c.sendStream(ctx, k, k.Src)
		}
		return c.receiveStream(ctx, k, k.Dst, ptr(k.Src))
	}
	length, inSlot := c.layout(len(k.Src), 1)
	for i := range pieces(len(k.Src), length) {
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
		round, f := c.open(ctx, k, false)
		if f != nil {
			return f
		}
		put(c.local.payload(c.me, round, end-at), k.Src[at:end])
		c.post(k, round)
		if c.me != root {
			continue
		}
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		if f := c.foldAll(k, ptr(dst), round, len(dst), zero, nil, len(dst), false); f != nil {
			return f
		}
	}
	return nil
}

// localReduceScatter: everybody posts a piece of every block, and reduces that of
// its own. Between two ranks the own block need not be posted.
func (c *Team) localReduceScatter(ctx context.Context, k *Call) *Fault {
	blocks := c.n
	if c.n == 2 {
		blocks = 1
	}
	largest := k.largest()
	length, inSlot := c.layout(largest, blocks)
	if read, f := c.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.reduceScatterByRead(ctx, k)
	}
	for i := range pieces(largest, length) {
		round, to, f := c.begin(ctx, k, inSlot)
		if f != nil {
			return f
		}
		for r := range c.n {
			if blocks > 1 {
				put(unsafe.Add(to, r*length), k.piece(k.Src, r, i*length, length))
			} else if r != c.me {
				put(to, k.piece(k.Src, r, i*length, length))
			}
		}
		c.postInline(k, round, length)
		if f := c.awaitAll(ctx, k, round); f != nil {
			return f
		}
		mine := k.piece(k.Src, c.me, i*length, length)
		dst := k.Dst[min(i*length, len(k.Dst)):]
		from, own := zero, unsafe.Pointer(nil)
		if blocks > 1 {
			from = func(int) int { return c.me * length }
		} else {
			own = ptr(mine)
		}
		if f := c.foldAll(k, ptr(dst), round, inSlot, from, own, len(mine), false); f != nil {
			return f
		}
	}
	return nil
}
