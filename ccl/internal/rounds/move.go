package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
)

// broadcast: the root posts, the others read.
func (c *Team) broadcast(ctx context.Context, k *call.Call) *call.Fault {
	root := int(k.Root)
	if read, f := c.offers.reads(ctx, k, len(k.Dst)); f != nil {
		return f
	} else if read {
		return c.fetchFromRoot(ctx, k, root, k.Dst, 0)
	}
	if c.n == 2 {
		if c.me == root {
			return c.stream.sendStream(ctx, k, k.Dst)
		}
		return c.stream.receiveStream(ctx, k, k.Dst, nil)
	}
	length, inSlot := c.staging.layoutSent(len(k.Dst), 1)
	for i := range call.Pieces(len(k.Dst), length) {
		at, end := i*length, min((i+1)*length, len(k.Dst))
		round, f := c.slots.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		if c.me == root {
			to, f := c.staging.roomAlone(ctx, k, round, inSlot)
			if f != nil {
				return f
			}
			ordered.Put(to, k.Dst[at:end])
			c.slots.post(k, round)
			continue
		}
		c.slots.post(k, round)
		from, f := c.staging.fetchAlone(ctx, k, root, round, inSlot)
		if f != nil {
			return f
		}
		ordered.Get(k.Dst[at:end], from)
	}
	return nil
}

// allGather: everybody posts its block and reads the others'.
func (c *Team) allGather(ctx context.Context, k *call.Call) *call.Fault {
	return c.collect(ctx, k, -1)
}

// gather: everybody posts its block, and the root reads them; or everybody writes its block where the root wants it.
func (c *Team) gather(ctx context.Context, k *call.Call) *call.Fault {
	root := int(k.Root)
	if done, f := c.gatherByWrite(ctx, k, root); f != nil || done {
		return f
	}
	if c.n > 2 {
		return c.collect(ctx, k, root)
	}
	if read, f := c.offers.reads(ctx, k, k.Largest()); f != nil {
		return f
	} else if read {
		return c.collectByRead(ctx, k, root)
	}
	if c.me != root {
		return c.stream.sendStream(ctx, k, k.Src)
	}
	c.mem.TakeOwn(k.Part(k.Dst, c.me), k.Src, len(k.Dst))
	return c.stream.receiveStream(ctx, k, k.Part(k.Dst, 1-c.me), nil)
}

// collect gathers the blocks of all ranks at root, or everywhere where it is -1.
func (c *Team) collect(ctx context.Context, k *call.Call, root int) *call.Fault {
	largest := k.Largest()
	length, inSlot := c.staging.layout(largest, 1)
	if read, f := c.offers.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.collectByRead(ctx, k, root)
	}
	reader := root < 0 || root == c.me
	for i := range call.Pieces(largest, length) {
		at := i * length
		round, f := c.slots.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		mine := k.Src[min(at, len(k.Src)):min(at+length, len(k.Src))]
		if root != c.me {
			to, f := c.staging.room(ctx, k, round, inSlot)
			if f != nil {
				return f
			}
			ordered.Put(to, mine)
		}
		c.slots.postInline(k, round, length)
		if !reader {
			continue
		}
		c.mem.TakeOwn(k.Piece(k.Dst, c.me, at, length), mine, 0)
		for j := 1; j < c.n; j++ {
			r := (c.me + j) % c.n
			from, f := c.staging.fetch(ctx, k, r, round, inSlot)
			if f != nil {
				return f
			}
			c.staging.receive(k.Piece(k.Dst, r, at, length), from, c.staging.returns(inSlot) && root < 0)
		}
		c.slots.seen = round
	}
	return nil
}

// scatter: the root posts the blocks of the others, each reads its own.
func (c *Team) scatter(ctx context.Context, k *call.Call) *call.Fault {
	root := int(k.Root)
	largest := k.Largest()
	if read, f := c.offers.reads(ctx, k, largest); f != nil {
		return f
	} else if read {
		return c.scatterByRead(ctx, k, root)
	}
	if c.n == 2 {
		if c.me != root {
			return c.stream.receiveStream(ctx, k, k.Dst, nil)
		}
		if f := c.stream.sendStream(ctx, k, k.Part(k.Src, 1-c.me)); f != nil {
			return f
		}
		c.mem.TakeOwn(k.Dst, k.Part(k.Src, c.me), len(k.Dst))
		return nil
	}
	length, inSlot := c.staging.layoutSent(largest, c.n-1)
	for i := range call.Pieces(largest, length) {
		at := i * length
		round, f := c.slots.open(ctx, k, inSlot == noSlot)
		if f != nil {
			return f
		}
		if c.me == root {
			to, f := c.staging.roomAlone(ctx, k, round, inSlot)
			if f != nil {
				return f
			}
			for r := range c.n {
				if r == root {
					copy(k.Dst[min(at, len(k.Dst)):], k.Piece(k.Src, r, at, length))
				} else {
					ordered.Put(unsafe.Add(to, other(root, r)*length), k.Piece(k.Src, r, at, length))
				}
			}
			c.slots.post(k, round)
			continue
		}
		c.slots.post(k, round)
		from, f := c.staging.fetchAlone(ctx, k, root, round, inSlot)
		if f != nil {
			return f
		}
		ordered.Get(k.Dst[min(at, len(k.Dst)):min(at+length, len(k.Dst))], unsafe.Add(from, other(root, c.me)*length))
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

// allToAll: everybody posts a piece of each of the others' blocks and reads
// its own from each. A piece is posted before it is overwritten, so it works in place.
func (c *Team) allToAll(ctx context.Context, k *call.Call) *call.Fault {
	block := k.Largest()
	length, inSlot := c.staging.layout(block, c.n-1)
	if read, f := c.offers.reads(ctx, k, block); f != nil {
		return f
	} else if read {
		if _, _, f := c.offers.exchange(ctx, k, k.Src, k.Dst, 0); f != nil {
			return f
		}
		if !c.offers.someInPlace() { // else a block would be overwritten before it is read
			return c.allToAllByRead(ctx, k)
		}
	}
	for i := range call.Pieces(block, length) {
		at := i * length
		round, to, f := c.staging.begin(ctx, k, inSlot)
		if f != nil {
			return f
		}
		for r := range c.n {
			if r != c.me {
				ordered.Put(unsafe.Add(to, other(c.me, r)*length), k.Piece(k.Src, r, at, length))
			}
		}
		c.slots.postInline(k, round, length)
		c.mem.TakeOwn(k.Piece(k.Dst, c.me, at, length), k.Piece(k.Src, c.me, at, length), 0)
		for j := 1; j < c.n; j++ {
			r := (c.me + j) % c.n
			from, f := c.staging.fetch(ctx, k, r, round, inSlot)
			if f != nil {
				return f
			}
			c.staging.receive(k.Piece(k.Dst, r, at, length), unsafe.Add(from, other(r, c.me)*length), c.staging.returns(inSlot))
		}
		c.slots.seen = round
	}
	return nil
}
