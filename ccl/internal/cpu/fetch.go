package cpu

import "context"

// The collectives that fetch data where they lie: a rank that others read from stays in the call until they
// have done so.

// fetchFromRoot fills dst from offset off of what the root offers: its whole vector in Broadcast, one block of it in
// Scatter, in which the root copies its own.
func (c *Team) fetchFromRoot(ctx context.Context, k *Call, root int, dst []byte, off int) *Fault {
	var mine []byte
	if c.me == root {
		if mine = k.Src; k.Kind == Broadcast {
			mine = k.Dst
		}
	}
	round, f := c.postOffer(ctx, k, mine, nil)
	if f != nil {
		return f
	}
	if c.me != root {
		o, f := c.offerOf(ctx, k, root, round)
		if f != nil {
			return f
		}
		src := o.src
		if f := c.fill(ctx, root, &src, off, dst); f != nil {
			return f
		}
	} else {
		takeOwn(dst, mine[off:off+len(dst)], len(dst))
	}
	return c.release(ctx, k, c.me == root)
}

// release ends a call in which others read from this rank's memory, if they do: it waits until they have.
func (c *Team) release(ctx context.Context, k *Call, wasRead bool) *Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	if wasRead {
		return c.awaitAll(ctx, k, round)
	}
	return nil
}

// scatterByRead: the root offers its vector, the others read their blocks of it.
func (c *Team) scatterByRead(ctx context.Context, k *Call, root int) *Fault {
	from, _ := k.block(c.me)
	return c.fetchFromRoot(ctx, k, root, k.Dst, from)
}

// collectByRead: everybody offers its block; root, or everybody where it is -1, reads those of the others.
func (c *Team) collectByRead(ctx context.Context, k *Call, root int) *Fault {
	mine := k.Src
	if root == c.me {
		mine = nil // nobody else wants it
	}
	round, f := c.postOffer(ctx, k, mine, nil)
	if f != nil {
		return f
	}
	if root < 0 || root == c.me {
		takeOwn(k.piece(k.Dst, c.me, 0, len(k.Src)), k.Src, len(k.Dst))
		for i := 1; i < c.n; i++ {
			r := (c.me + i) % c.n
			o, f := c.offerOf(ctx, k, r, round)
			if f != nil {
				return f
			}
			src := o.src
			if f := c.fill(ctx, r, &src, 0, k.piece(k.Dst, r, 0, k.blockLen(r))); f != nil {
				return f
			}
		}
	}
	if root < 0 {
		return c.localBarrier(ctx, k)
	}
	return c.releaseBy(ctx, k, root)
}

// releaseBy ends a call in which only root reads: the others wait for it.
func (c *Team) releaseBy(ctx context.Context, k *Call, root int) *Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	if c.me != root {
		return c.await(ctx, k, root, round)
	}
	return nil
}

// allToAllByRead reads this rank's block of each of the others' vectors, which have been offered.
func (c *Team) allToAllByRead(ctx context.Context, k *Call) *Fault {
	n := k.largest()
	takeOwn(k.piece(k.Dst, c.me, 0, n), k.piece(k.Src, c.me, 0, n), len(k.Dst))
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		if f := c.fill(ctx, r, &c.offers[r].src, c.me*n, k.piece(k.Dst, r, 0, n)); f != nil {
			return f
		}
	}
	return c.localBarrier(ctx, k)
}

// reduceAtRoot: the root of two ranks reduces what it reads from the other.
func (c *Team) reduceAtRoot(ctx context.Context, k *Call, root int) *Fault {
	if _, _, f := c.exchange(ctx, k, k.Src, nil, 0); f != nil {
		return f
	}
	if c.me == root {
		if f := c.reduceByRead(ctx, k, k.Dst, 0); f != nil {
			return f
		}
	}
	return c.releaseBy(ctx, k, root)
}

// reduceScatterByRead: each rank reduces its block from what it reads of the others' vectors.
func (c *Team) reduceScatterByRead(ctx context.Context, k *Call) *Fault {
	if _, _, f := c.exchange(ctx, k, k.Src, nil, 0); f != nil {
		return f
	}
	from, _ := k.block(c.me)
	if f := c.reduceByRead(ctx, k, k.Dst, from); f != nil {
		return f
	}
	return c.localBarrier(ctx, k)
}
