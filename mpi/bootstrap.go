package mpi

import (
	"context"
	"slices"
)

// AllGather returns every rank's mine, indexed by rank. With Rank and Size it makes a Comm the
// bootstrap of other libraries (ccl.Bootstrap). It waits without holding up its thread, so that
// other goroutines of the process can help what the others wait for, and returns on no rank before
// all have what they came for: a rank that went on to a blocking start of another library, while
// its neighbour still waits for MPI, could wait forever.
func (c *Comm) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	// A context that can end makes all calls non-blocking ones.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sizes := make([]int64, c.size)
	if err := AllGather(ctx, c, sizes, []int64{int64(len(mine))}); err != nil {
		return nil, err
	}
	counts, total := make([]int, c.size), 0
	for r, n := range sizes {
		counts[r] = int(n)
		total += int(n)
	}
	all := make([]byte, total)
	if err := AllGatherV(ctx, c, all, counts, slices.Clone(mine)); err != nil {
		return nil, err
	}
	if err := Barrier(ctx, c); err != nil {
		return nil, err
	}
	blocks := make([][]byte, c.size)
	for r, n := range counts {
		blocks[r], all = all[:n:n], all[n:]
	}
	return blocks, nil
}
