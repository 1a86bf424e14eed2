//go:build mpi && cgo

package mpi_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/mpi"
)

// way is one of the two ways a call can go. With a context that can end, a collective has a goroutine of its own, and a
// message is polled; where calls take turns, all are polled.
type way struct {
	name string
	ctx  context.Context
}

func ways(t *testing.T) []way {
	ending, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return []way{{"blocking", context.Background()}, {"with a context", ending}}
}

// limits are the counts from which calls go by MPI's large forms, or in pieces.
var limits = []int{math.MaxInt32, 5}

func TestCollectives(t *testing.T) {
	for _, limit := range limits {
		for _, way := range ways(t) {
			ctx := way.ctx
			name := fmt.Sprintf("%s, limit %d, ", way.name, limit)
			t.Run(name+"int8", func(t *testing.T) { collectives[int8](t, ctx, limit) })
			t.Run(name+"uint8", func(t *testing.T) { collectives[uint8](t, ctx, limit) })
			t.Run(name+"int16", func(t *testing.T) { collectives[int16](t, ctx, limit) })
			t.Run(name+"uint16", func(t *testing.T) { collectives[uint16](t, ctx, limit) })
			t.Run(name+"int32", func(t *testing.T) { collectives[int32](t, ctx, limit) })
			t.Run(name+"uint32", func(t *testing.T) { collectives[uint32](t, ctx, limit) })
			t.Run(name+"int64", func(t *testing.T) { collectives[int64](t, ctx, limit) })
			t.Run(name+"uint64", func(t *testing.T) { collectives[uint64](t, ctx, limit) })
			t.Run(name+"int", func(t *testing.T) { collectives[int](t, ctx, limit) })
			t.Run(name+"float32", func(t *testing.T) { collectives[float32](t, ctx, limit) })
			t.Run(name+"float64", func(t *testing.T) { collectives[float64](t, ctx, limit) })
		}
	}
}

// value is element i of rank r's vector.
func value[T mpi.Number](r, i int) T { return T((r*7 + i*3) % 5) }

func vector[T mpi.Number](r, n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = value[T](r, i)
	}
	return v
}

// reduced is the vector over which ranks 0 to last are reduced.
func reduced[T mpi.Number](op mpi.Op, last, n int) []T {
	v := vector[T](0, n)
	for r := 1; r <= last; r++ {
		for i := range v {
			x := value[T](r, i)
			switch op {
			case mpi.Sum:
				v[i] += x
			case mpi.Prod:
				v[i] *= x
			case mpi.Min:
				v[i] = min(v[i], x)
			case mpi.Max:
				v[i] = max(v[i], x)
			}
		}
	}
	return v
}

// collectives makes every collective on vectors of length 0, 1 and some blocks.
func collectives[T mpi.Number](t *testing.T, ctx context.Context, limit int) {
	mpi.SetLimit(t, limit)
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	require.NoError(t, mpi.Barrier(ctx, c))
	for _, k := range []int{0, 1, 13} {
		for root := range n {
			t.Run(fmt.Sprintf("%d root %d", k, root), func(t *testing.T) { rooted[T](t, ctx, c, k, root) })
		}
		for _, op := range []mpi.Op{mpi.Sum, mpi.Prod, mpi.Min, mpi.Max} {
			src, dst := vector[T](me, k), make([]T, k)
			require.NoError(t, mpi.AllReduce(ctx, c, dst, src, op))
			require.Equal(t, reduced[T](op, n-1, k), dst, op)
			require.NoError(t, mpi.AllReduce(ctx, c, src, src, op))
			require.Equal(t, dst, src, op)
		}
		src, dst := vector[T](me, k), make([]T, k)
		require.NoError(t, mpi.Scan(ctx, c, dst, src, mpi.Sum))
		require.Equal(t, reduced[T](mpi.Sum, me, k), dst)

		for _, dst := range [][]T{make([]T, k), src} { // apart, and in place
			require.NoError(t, mpi.Exscan(ctx, c, dst, src, mpi.Sum))
			if me > 0 { // rank 0 has none
				require.Equal(t, reduced[T](mpi.Sum, me-1, k), dst)
			}
		}

		src = vector[T](me, n*k)
		require.NoError(t, mpi.ReduceScatter(ctx, c, dst, src, mpi.Sum))
		require.Equal(t, reduced[T](mpi.Sum, n-1, n*k)[me*k:(me+1)*k], dst)
		require.NoError(t, mpi.ReduceScatter(ctx, c, src[:k], src, mpi.Sum))
		require.Equal(t, dst, src[:k])

		all := make([]T, n*k)
		require.NoError(t, mpi.AllGather(ctx, c, all, vector[T](me, k)))
		require.Equal(t, gathered[T](equal(n, k)), all)
		clear(all)
		copy(all[me*k:], vector[T](me, k))
		require.NoError(t, mpi.AllGather(ctx, c, all, all[me*k:(me+1)*k]))
		require.Equal(t, gathered[T](equal(n, k)), all)

		src = vector[T](me, n*k)
		require.NoError(t, mpi.AllToAll(ctx, c, all, src))
		require.Equal(t, exchanged[T](me, equal(n, k), equal(n, k)), all)
		require.NoError(t, mpi.AllToAll(ctx, c, src, src))
		require.Equal(t, all, src)

		byRank[T](t, ctx, c, k)
	}
}

// TestNoSuchRoot has roots that are no ranks: every rank is told so, and none cuts a slice by them.
func TestNoSuchRoot(t *testing.T) {
	ctx, c := t.Context(), mpi.World()
	src, all := []int64{1, 2}, make([]int64, 2*c.Size())
	for _, root := range []int{-1, c.Size(), math.MinInt, math.MaxInt} {
		require.ErrorIs(t, mpi.Gather(ctx, c, all, src, root), mpi.ErrRoot)
		require.ErrorIs(t, mpi.Scatter(ctx, c, src, all, root), mpi.ErrRoot)
		_, err := mpi.Igather(c, all, src, root)
		require.ErrorIs(t, err, mpi.ErrRoot)
		_, err = mpi.Iscatter(c, src, all, root)
		require.ErrorIs(t, err, mpi.ErrRoot)
	}
}

// rooted makes the collectives that have a root.
func rooted[T mpi.Number](t *testing.T, ctx context.Context, c *mpi.Comm, k, root int) {
	n, me := c.Size(), c.Rank()
	buf := vector[T](me, k)
	require.NoError(t, mpi.Bcast(ctx, c, buf, root))
	require.Equal(t, vector[T](root, k), buf)

	var dst []T
	if me == root {
		dst = make([]T, k)
	}
	require.NoError(t, mpi.Reduce(ctx, c, dst, vector[T](me, k), mpi.Sum, root))
	if me == root {
		require.Equal(t, reduced[T](mpi.Sum, n-1, k), dst)
		dst = vector[T](me, k)
		require.NoError(t, mpi.Reduce(ctx, c, dst, dst, mpi.Sum, root))
		require.Equal(t, reduced[T](mpi.Sum, n-1, k), dst)
	} else {
		require.NoError(t, mpi.Reduce(ctx, c, nil, vector[T](me, k), mpi.Sum, root))
	}

	var all []T
	if me == root {
		all = make([]T, n*k)
	}
	require.NoError(t, mpi.Gather(ctx, c, all, vector[T](me, k), root))
	if me == root {
		require.Equal(t, gathered[T](equal(n, k)), all)
		require.NoError(t, mpi.Gather(ctx, c, all, all[me*k:(me+1)*k], root))
		require.Equal(t, gathered[T](equal(n, k)), all)
	} else {
		require.NoError(t, mpi.Gather(ctx, c, nil, vector[T](me, k), root))
	}

	part := make([]T, k)
	require.NoError(t, mpi.Scatter(ctx, c, part, all, root))
	require.Equal(t, vector[T](me, k), part)
	if me == root {
		require.NoError(t, mpi.Scatter(ctx, c, all[me*k:(me+1)*k], all, root))
		require.Equal(t, gathered[T](equal(n, k)), all)
	} else {
		require.NoError(t, mpi.Scatter(ctx, c, part, nil, root))
	}

	counts := uneven(n, k)
	all = nil
	if me == root {
		all = make([]T, op.Elements(counts))
	}
	require.NoError(t, mpi.GatherV(ctx, c, all, counts, vector[T](me, counts[me]), root))
	if me == root {
		require.Equal(t, gathered[T](counts), all)
	}
	part = make([]T, counts[me])
	require.NoError(t, mpi.ScatterV(ctx, c, part, all, counts, root))
	require.Equal(t, vector[T](me, counts[me]), part)
}

// byRank makes the collectives with counts by rank.
func byRank[T mpi.Number](t *testing.T, ctx context.Context, c *mpi.Comm, k int) {
	n, me := c.Size(), c.Rank()
	counts := uneven(n, k)
	src := vector[T](me, op.Elements(counts))
	dst := make([]T, counts[me])
	require.NoError(t, mpi.ReduceScatterV(ctx, c, dst, src, counts, mpi.Sum))
	before := op.Elements(counts[:me])
	require.Equal(t, reduced[T](mpi.Sum, n-1, op.Elements(counts))[before:before+counts[me]], dst)

	all := make([]T, op.Elements(counts))
	require.NoError(t, mpi.AllGatherV(ctx, c, all, counts, vector[T](me, counts[me])))
	require.Equal(t, gathered[T](counts), all)
	require.NoError(t, mpi.AllGatherV(ctx, c, all, counts, all[before:before+counts[me]]))
	require.Equal(t, gathered[T](counts), all)

	// Rank r gives counts[s]+r elements to rank s.
	dc, sc := make([]int, n), make([]int, n)
	for r := range n {
		dc[r], sc[r] = counts[me]+r, counts[r]+me
	}
	src, dst = vector[T](me, op.Elements(sc)), make([]T, op.Elements(dc))
	require.NoError(t, mpi.AllToAllV(ctx, c, dst, dc, src, sc))
	want := []T{}
	for r := range n {
		from := 0
		for s := range me {
			from += counts[s] + r
		}
		want = append(want, vector[T](r, from+dc[r])[from:]...)
	}
	require.Equal(t, want, slices.Clip(dst))
}

func equal(n, k int) []int { return slices.Repeat([]int{k}, n) }

// uneven are counts of which rank 0's is least and may be 0.
func uneven(n, k int) []int {
	counts := make([]int, n)
	for r := range counts {
		counts[r] = k/2 + 2*r
	}
	return counts
}

// gathered is all ranks' vectors, one after the other.
func gathered[T mpi.Number](counts []int) []T {
	all := []T{}
	for r, n := range counts {
		all = append(all, vector[T](r, n)...)
	}
	return all
}

// exchanged is what rank me has after AllToAll of equal blocks.
func exchanged[T mpi.Number](me int, dc, sc []int) []T {
	all := []T{}
	for r := range dc {
		all = append(all, vector[T](r, op.Elements(sc))[me*dc[r]:(me+1)*dc[r]]...)
	}
	return all
}
