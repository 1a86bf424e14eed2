//go:build mpi && cgo

package mpi_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestMixedContexts has each rank in turn make its collectives with a deadline while the others have none: every call
// that a program can make so completes, with the values of any other.
func TestMixedContexts(t *testing.T) {
	for _, tc := range []struct{ limit, k int }{{math.MaxInt32, 1}, {math.MaxInt32, 1 << 12}, {5, 13}} {
		for late := range mpi.World().Size() {
			t.Run(fmt.Sprintf("%d elements, limit %d, rank %d has a deadline", tc.k, tc.limit, late), func(t *testing.T) {
				mpi.SetLimit(t, tc.limit)
				within(t, func() { mixed(t, deadlineOf(t, late), tc.k) })
			})
		}
	}
}

// deadlineOf is a context with a deadline on one rank, and one without on the others.
func deadlineOf(t *testing.T, rank int) context.Context {
	if mpi.World().Rank() != rank {
		return context.Background()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// mixed makes every kind of collective once, on vectors or blocks of k elements.
func mixed(t *testing.T, ctx context.Context, k int) {
	c, err := mpi.World().Dup()
	require.NoError(t, err)
	n, me := c.Size(), c.Rank()
	counts, root := equal(n, k), n-1
	whole := func() []float64 { return vector[float64](me, n*k) }
	dst, all := make([]float64, k), make([]float64, n*k)

	require.NoError(t, mpi.Barrier(ctx, c))
	require.NoError(t, mpi.AllReduce(ctx, c, dst, vector[float64](me, k), mpi.Sum))
	require.Equal(t, reduced[float64](mpi.Sum, n-1, k), dst)
	require.NoError(t, mpi.Scan(ctx, c, dst, vector[float64](me, k), mpi.Sum))
	require.Equal(t, reduced[float64](mpi.Sum, me, k), dst)
	require.NoError(t, mpi.Exscan(ctx, c, dst, vector[float64](me, k), mpi.Sum))
	if me > 0 {
		require.Equal(t, reduced[float64](mpi.Sum, me-1, k), dst)
	}
	at := []mpi.Loc[float64]{{Value: float64(me), Index: me}}
	require.NoError(t, mpi.MaxLoc(ctx, c, at, at))
	require.Equal(t, mpi.Loc[float64]{Value: float64(n - 1), Index: n - 1}, at[0])
	require.NoError(t, mpi.ReduceScatter(ctx, c, dst, whole(), mpi.Sum))
	require.Equal(t, reduced[float64](mpi.Sum, n-1, n*k)[me*k:(me+1)*k], dst)
	require.NoError(t, mpi.ReduceScatterV(ctx, c, dst, whole(), counts, mpi.Sum))
	require.Equal(t, reduced[float64](mpi.Sum, n-1, n*k)[me*k:(me+1)*k], dst)
	require.NoError(t, mpi.AllGather(ctx, c, all, vector[float64](me, k)))
	require.Equal(t, gathered[float64](counts), all)
	require.NoError(t, mpi.AllGatherV(ctx, c, all, counts, vector[float64](me, k)))
	require.Equal(t, gathered[float64](counts), all)
	require.NoError(t, mpi.AllToAll(ctx, c, all, whole()))
	require.Equal(t, exchanged[float64](me, counts, counts), all)
	require.NoError(t, mpi.AllToAllV(ctx, c, all, counts, whole(), counts))
	require.Equal(t, exchanged[float64](me, counts, counts), all)

	bcast := vector[float64](me, k)
	require.NoError(t, mpi.Bcast(ctx, c, bcast, root))
	require.Equal(t, vector[float64](root, k), bcast)
	require.NoError(t, mpi.Scatter(ctx, c, dst, gathered[float64](counts), root))
	require.Equal(t, vector[float64](me, k), dst)
	require.NoError(t, mpi.ScatterV(ctx, c, dst, gathered[float64](counts), counts, root))
	require.Equal(t, vector[float64](me, k), dst)
	require.NoError(t, mpi.Reduce(ctx, c, dst, vector[float64](me, k), mpi.Max, root))
	clear(all)
	require.NoError(t, mpi.Gather(ctx, c, all, vector[float64](me, k), root))
	if me == root {
		require.Equal(t, reduced[float64](mpi.Max, n-1, k), dst)
		require.Equal(t, gathered[float64](counts), all)
	}
	clear(all)
	require.NoError(t, mpi.GatherV(ctx, c, all, counts, vector[float64](me, k), root))
	if me == root {
		require.Equal(t, gathered[float64](counts), all)
	}
	require.NoError(t, c.Free())
}

// TestDeadlineOfOneRank has a deadline end on one rank inside a collective that the others come to later: the rank is told,
// the others complete, and what was given up is counted until then.
func TestDeadlineOfOneRank(t *testing.T) {
	if mpi.World().Size() == 1 {
		return // a collective of one rank does not wait
	}
	within(t, func() {
		c, err := mpi.World().Dup()
		require.NoError(t, err)
		x := []float64{1}
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			err := mpi.AllReduce(ctx, c, x, x, mpi.Sum)
			require.EqualError(t, err, "mpi: AllReduce: abandoned, but MPI cannot cancel it: this communicator can no longer be used: context deadline exceeded")
			require.ErrorIs(t, err, mpi.ErrAbandoned)
			require.Equal(t, 1, mpi.Abandoned())
			require.ErrorIs(t, mpi.Barrier(context.Background(), c), mpi.ErrAbandoned)
		}
		require.NoError(t, mpi.Barrier(context.Background(), mpi.World()))
		if c.Rank() > 0 {
			require.NoError(t, mpi.AllReduce(context.Background(), c, x, x, mpi.Sum))
			require.Equal(t, float64(c.Size()), x[0])
		}
		require.Eventually(t, func() bool { return mpi.Abandoned() == 0 }, time.Minute, time.Millisecond)
	})
}
