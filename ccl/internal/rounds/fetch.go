package rounds

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The collectives that fetch data where they lie: a rank that others read from stays in the call until they
// have done so.

// fetchFromRoot fills dst from offset off of what the root offers: its whole vector in Broadcast, one block of it in
// Scatter, in which the root copies its own.
func (c *Team) fetchFromRoot(ctx context.Context, k *call.Call, root int, dst []byte, off int) *call.Fault {
	var mine []byte
	switch {
	case c.me != root:
		c.offers.toBeFilled(dst)
	case k.Kind == call.Broadcast:
		mine = k.Dst
	default:
		mine = k.Src
	}
	round, f := c.offers.postOffer(ctx, k, mine, nil)
	if f != nil {
		return f
	}
	if c.me != root {
		o, f := c.offers.offerOf(ctx, k, root, round)
		if f != nil {
			return f
		}
		if f := c.mem.Fill(ctx, root, &o.src, off, dst); f != nil {
			return f
		}
	} else {
		c.mem.TakeOwn(dst, mine[off:off+len(dst)], len(dst))
	}
	return c.slots.release(ctx, k, c.me == root)
}

// scatterByRead: the root offers its vector, the others read their blocks of it.
func (c *Team) scatterByRead(ctx context.Context, k *call.Call, root int) *call.Fault {
	from, _ := k.Block(c.me)
	return c.fetchFromRoot(ctx, k, root, k.Dst, from)
}

// collectByRead: everybody offers its block; root, or everybody where it is -1, reads those of the others.
func (c *Team) collectByRead(ctx context.Context, k *call.Call, root int) *call.Fault {
	mine := k.Src
	if root == c.me {
		mine = nil // nobody else wants it
	}
	if root < 0 || root == c.me {
		c.offers.toBeFilled(k.Dst)
	}
	round, f := c.offers.postOffer(ctx, k, mine, nil)
	if f != nil {
		return f
	}
	if root < 0 || root == c.me {
		c.mem.TakeOwn(k.Piece(k.Dst, c.me, 0, len(k.Src)), k.Src, len(k.Dst))
		for i := 1; i < c.n; i++ {
			r := (c.me + i) % c.n
			o, f := c.offers.offerOf(ctx, k, r, round)
			if f != nil {
				return f
			}
			if f := c.mem.Fill(ctx, r, &o.src, 0, k.Piece(k.Dst, r, 0, k.BlockLen(r))); f != nil {
				return f
			}
		}
	}
	if root < 0 {
		return c.slots.barrier(ctx, k)
	}
	return c.slots.releaseBy(ctx, k, root)
}

// gatherByWrite has each rank write its block into the root's results, all at once, if they can be
// touched: those of a rank of this process and, where a further meeting of the ranks is not felt,
// MakeSlice memory that shares no page with anything else, so that it can be taken back (see
// reach). It reports whether it has; what the root offers tells all ranks.
func (c *Team) gatherByWrite(ctx context.Context, k *call.Call, root int) (bool, *call.Fault) {
	largest := k.Largest()
	if largest < tuning.WriteRootFrom {
		return false, nil
	}
	if f := c.offers.acquaint(ctx, k); f != nil {
		return false, f
	}
	if !c.mem.Known.All && largest < tuning.AskRootFrom {
		return false, nil
	}
	var results []byte
	if c.me == root {
		results = k.Dst
	}
	round, f := c.offers.postOffer(ctx, k, nil, results)
	if f != nil {
		return false, f
	}
	o := c.offers.newOffer(nil, results)
	if c.me != root {
		if o, f = c.offers.offerOf(ctx, k, root, round); f != nil {
			return false, f
		}
	}
	_, size := k.Block(c.n - 1)
	if lead, tail := o.dst.Edges(size); !c.mem.Known.All && (o.dst.Size == 0 || lead+tail > 0) {
		return false, nil
	}
	if c.me == root {
		c.mem.TakeOwn(k.Part(k.Dst, c.me), k.Src, size)
		return true, c.mem.Reclaim(k.Dst, c.slots.release(ctx, k, true))
	}
	from, _ := k.Block(c.me)
	if f := c.mem.Write(root, &o.dst, from, k.Src, size); f != nil {
		return true, f
	}
	return true, c.slots.release(ctx, k, false)
}

// allToAllByRead reads this rank's block of each of the others' vectors, which have been offered.
func (c *Team) allToAllByRead(ctx context.Context, k *call.Call) *call.Fault {
	n := k.Largest()
	c.mem.TakeOwn(k.Piece(k.Dst, c.me, 0, n), k.Piece(k.Src, c.me, 0, n), len(k.Dst))
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		if f := c.mem.Fill(ctx, r, &c.offers.posted[r].src, c.me*n, k.Piece(k.Dst, r, 0, n)); f != nil {
			return f
		}
	}
	return c.slots.barrier(ctx, k)
}

// reduceAtRoot is for two ranks: the root reduces what it reads from the other.
func (c *Team) reduceAtRoot(ctx context.Context, k *call.Call, root int) *call.Fault {
	if _, _, f := c.offers.exchange(ctx, k, k.Src, nil, 0); f != nil {
		return f
	}
	if c.me == root {
		if f := c.sums.reduceByRead(ctx, k, k.Dst, 0); f != nil {
			return f
		}
	}
	return c.slots.releaseBy(ctx, k, root)
}

// reduceScatterByRead: each rank reduces its block from what it reads of the others' vectors.
func (c *Team) reduceScatterByRead(ctx context.Context, k *call.Call) *call.Fault {
	if _, _, f := c.offers.exchange(ctx, k, k.Src, nil, 0); f != nil {
		return f
	}
	from, _ := k.Block(c.me)
	if f := c.sums.reduceByRead(ctx, k, k.Dst, from); f != nil {
		return f
	}
	return c.slots.barrier(ctx, k)
}
