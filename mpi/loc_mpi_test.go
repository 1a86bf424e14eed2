//go:build mpi && cgo

package mpi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

func TestLoc(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			for _, limit := range limits {
				mpi.SetLimit(t, limit)
				locs[int8](t, way.ctx)
				locs[uint64](t, way.ctx)
				locs[int](t, way.ctx)
				locs[float32](t, way.ctx)
				locs[float64](t, way.ctx)
				locs[mpi.BFloat16](t, way.ctx)
			}
		})
	}
	c, a := mpi.World(), []mpi.Loc[float64]{{Value: math.NaN(), Index: 7}}
	b := []mpi.Loc[float64]{{}}
	require.NoError(t, mpi.MaxLoc(context.Background(), c, b, a))
	require.True(t, math.IsNaN(b[0].Value))
	require.Equal(t, 7, b[0].Index)
	require.EqualError(t, mpi.MinLoc(context.Background(), c, b[:0], a), "mpi: MinLoc: dst has 0 elements, but should have 1 (MPI_ERR_COUNT)")
}

// locs has the least and the greatest of vectors with many equal values.
func locs[T mpi.Number](t *testing.T, ctx context.Context) {
	c := mpi.World()
	for _, k := range []int{0, 1, 13} {
		at := func(r int) []mpi.Loc[T] {
			l := make([]mpi.Loc[T], k)
			for i, x := range vector[T](r, k) {
				l[i] = mpi.Loc[T]{Value: x, Index: 100*r - i}
			}
			return l
		}
		least, greatest := at(0), at(0)
		for r := 1; r < c.Size(); r++ {
			for i, l := range at(r) { // a higher rank has the higher index, and so loses if values are equal
				if l.Value < least[i].Value {
					least[i] = l
				}
				if l.Value > greatest[i].Value {
					greatest[i] = l
				}
			}
		}
		got := make([]mpi.Loc[T], k)
		require.NoError(t, mpi.MinLoc(ctx, c, got, at(c.Rank())))
		require.Equal(t, least, got)
		got = at(c.Rank())
		require.NoError(t, mpi.MaxLoc(ctx, c, got, got))
		require.Equal(t, greatest, got)
	}
}
