package mpi

import (
	"cmp"
	"context"
	"slices"
)

// AllGather returns every rank's mine, indexed by rank. With Rank and Size it makes a Comm the
// bootstrap of other libraries (ccl.Bootstrap). It waits without holding up its thread, so that
// other goroutines of the process can help what the others wait for, and returns on no rank before
// all have what they came for: a rank that went on to a blocking start of another library, while
// its neighbour still waits for MPI, could wait forever.
func (c *Comm) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	sizes := make([]int64, c.size)
	k, err := allGather(c, sizes, []int64{int64(len(mine))})
	if err := c.patient(ctx, &k, err); err != nil {
		return nil, err
	}
	counts, total := make([]int, c.size), 0
	for r, n := range sizes {
		counts[r] = int(n)
		total += int(n)
	}
	all := make([]byte, total)
	k, err = allGatherV(c, all, counts, slices.Clone(mine))
	if err := c.patient(ctx, &k, err); err != nil {
		return nil, err
	}
	if err := c.patient(ctx, &Call{Kind: KindBarrier}, nil); err != nil {
		return nil, err
	}
	blocks := make([][]byte, c.size)
	for r, n := range counts {
		blocks[r], all = all[:n:n], all[n:]
	}
	return blocks, nil
}

// patient makes the collective k as a non-blocking one that is polled, whatever ctx is. All ranks call it so.
func (c *Comm) patient(ctx context.Context, k *Call, err error) error {
	err = cmp.Or(err, k.check(c.size), c.ready(k.Kind.String()))
	if err == nil && ctx.Err() != nil {
		err = notBegun(k, ctx.Err())
	}
	if err == nil {
		_, err = c.poll(ctx, k)
	}
	return err
}
