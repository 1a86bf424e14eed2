package cpu

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/reduce"
)

// localBroadcast: the root posts, the others read.
func (c *Team) localBroadcast(ctx context.Context, k *Call) *Fault {
	root := int(k.Root)
	if read, f := c.reads(ctx, k, len(k.Dst)); f != nil {
		return f
	} else if read {
		return c.fetchFromRoot(ctx, k, root, k.Dst, 0)
	}
	if c.n == 2 {
		if c.me == root {
			return c.sendStream(ctx, k, k.Dst)
		}
		return c.receiveStream(ctx, k, k.Dst, nil)
	}
	length, inSlot := c.layout(len(k.Dst), 1)
	for i := range pieces(len(k.Dst), length) {
		at, end := i*length, min((i+1)*length, len(k.Dst))
		round, f := c.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		if c.me == root {
			to, f := c.slotOf(c.me, round, inSlot)
			if f != nil {
				return f
			}
			put(to, k.Dst[at:end])
			c.post(k, round)
			continue
		}
		c.post(k, round)
		from, f := c.fetch(ctx, k, root, round, inSlot)
		if f != nil {
			return f
		}
		get(k.Dst[at:end], from)
	}
	return nil
}

// localAllGather: everybody posts its block and reads the others'.
func (c *Team) localAllGather(ctx context.Context, k *Call) *Fault {
	return c.collect(ctx, k, -1)
}

// localGather: everybody posts its block; the root reads them.
func (c *Team) localGather(ctx context.Context, k *Call) *Fault {
	root := int(k.Root)
	if c.n > 2 {
		return c.collect(ctx, k, root)
	}
	if read, f := c.reads(ctx, k, k.largest()); f != nil {
		return f
	} else if read {
		return c.collectByRead(ctx, k, root)
	}
	if c.me != root {
		return c.sendStream(ctx, k, k.Src)
	}
	takeOwn(k.part(k.Dst, c.me), k.Src, len(k.Dst))
	return c.receiveStream(ctx, k, k.part(k.Dst, 1-c.me), nil)
}

// takeOwn copies what a rank sends to itself, among results of so many bytes, unless it is there, where others may be
// reading it.
func takeOwn(dst, src []byte, results int) {
	switch {
	case ptr(dst) == ptr(src):
	case len(src) <= tuning.PreemptPiece:
		put(ptr(dst), src)
	case streamsOwn(len(src), results):
		reduce.Stream(ptr(dst), ptr(src), len(src))
	default:
		reduce.Copy(ptr(dst), ptr(src), len(src))
	}
}

// collect gathers the blocks of all ranks at root, or everywhere where it is -1.
func (c *Team) collect(ctx context.Context, k *Call, root int) *Fault {
	largest := k.largest()
	length, inSlot := c.layout(largest, 1)
	if read, f := c.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.collectByRead(ctx, k, root)
	}
	reader := root < 0 || root == c.me
	for i := range pieces(largest, length) {
		at := i * length
		round, f := c.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		mine := k.Src[min(at, len(k.Src)):min(at+length, len(k.Src))]
		if root != c.me {
			to, f := c.slotOf(c.me, round, inSlot)
			if f != nil {
				return f
			}
			put(to, mine)
		}
		c.postInline(k, round, length)
		if !reader {
			continue
		}
		takeOwn(k.piece(k.Dst, c.me, at, length), mine, 0)
		for j := 1; j < c.n; j++ {
			r := (c.me + j) % c.n
			from, f := c.fetch(ctx, k, r, round, inSlot)
			if f != nil {
				return f
			}
			c.receive(k.piece(k.Dst, r, at, length), from, inSlot == noSlot && root < 0)
		}
		c.seen = round
	}
	return nil
}

// localScatter: the root posts the blocks of the others, each reads its own.
func (c *Team) localScatter(ctx context.Context, k *Call) *Fault {
	root := int(k.Root)
	largest := k.largest()
	if read, f := c.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.scatterByRead(ctx, k, root)
	}
	if c.n == 2 {
		if c.me != root {
			return c.receiveStream(ctx, k, k.Dst, nil)
		}
		if f := c.sendStream(ctx, k, k.part(k.Src, 1-c.me)); f != nil {
			return f
		}
		takeOwn(k.Dst, k.part(k.Src, c.me), len(k.Dst))
		return nil
	}
	length, inSlot := c.layout(largest, c.n-1)
	for i := range pieces(largest, length) {
		at := i * length
		round, f := c.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		if c.me == root {
			to, f := c.slotOf(c.me, round, inSlot)
			if f != nil {
				return f
			}
			for r := range c.n {
				if r == root {
					copy(k.Dst[min(at, len(k.Dst)):], k.piece(k.Src, r, at, length))
				} else {
					put(unsafe.Add(to, other(root, r)*length), k.piece(k.Src, r, at, length))
				}
			}
			c.post(k, round)
			continue
		}
		c.post(k, round)
		from, f := c.fetch(ctx, k, root, round, inSlot)
		if f != nil {
			return f
		}
		get(k.Dst[min(at, len(k.Dst)):min(at+length, len(k.Dst))], unsafe.Add(from, other(root, c.me)*length))
	}
	return nil
}

// other is the place of rank r among those that are not me.
func other(me, r int) int {
	if r > me {
		return r - 1
	}
	return r
}

// localAllToAll: everybody posts a piece of each of the others' blocks and reads
// its own from each. A piece is posted before it is overwritten, so it works in place.
func (c *Team) localAllToAll(ctx context.Context, k *Call) *Fault {
	block := k.largest()
	length, inSlot := c.layout(block, c.n-1)
	if read, f := c.reads(ctx, k, block); f != nil {
		return f
	} else if read {
		if _, _, f := c.exchange(ctx, k, k.Src, k.Dst, 0); f != nil {
			return f
		}
		if !c.someInPlace() { // else a block would be overwritten before it is read
			return c.allToAllByRead(ctx, k)
		}
	}
	for i := range pieces(block, length) {
		at := i * length
		round, to, f := c.begin(ctx, k, inSlot)
		if f != nil {
			return f
		}
		for r := range c.n {
			if r != c.me {
				put(unsafe.Add(to, other(c.me, r)*length), k.piece(k.Src, r, at, length))
			}
		}
		c.postInline(k, round, length)
		takeOwn(k.piece(k.Dst, c.me, at, length), k.piece(k.Src, c.me, at, length), 0)
		for j := 1; j < c.n; j++ {
			r := (c.me + j) % c.n
			from, f := c.fetch(ctx, k, r, round, inSlot)
			if f != nil {
				return f
			}
			c.receive(k.piece(k.Dst, r, at, length), unsafe.Add(from, other(r, c.me)*length), inSlot == noSlot)
		}
		c.seen = round
	}
	return nil
}

// localBarrier: a round without data. After it, all have done what they did before it.
func (c *Team) localBarrier(ctx context.Context, k *Call) *Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	return c.awaitAll(ctx, k, round)
}
