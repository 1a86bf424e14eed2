package mpiengine_test

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/mpiengine"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/mpi"
)

// open is an Engine of one rank, of MPI's world where the tag mpi has one. What several ranks do is
// tested by test/mpi, through bench.
func open(t *testing.T) *mpiengine.Engine {
	t.Helper()
	lib, err := mpiengine.Backend().Open()
	if err != nil && os.Getenv("GOCCL_REQUIRE") != "all" {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NotEmpty(t, lib.Version)
	require.False(t, lib.Interruptible)
	require.Zero(t, lib.IDBytes)
	_, err = lib.New(t.Context(), engine.Group{Rank: 0, Size: 2}, nil)
	require.EqualError(t, err, "MPI's world has 1 ranks, but this Comm has 2: the backend mpi is for the ranks that one mpiexec or srun started, all of them")
	e, err := lib.New(t.Context(), engine.Group{Rank: 0, Size: 1}, nil)
	require.NoError(t, err)
	return e.(*mpiengine.Engine)
}

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// TestEngine is one test, since MPI cannot be initialised again after the last Close.
func TestEngine(t *testing.T) {
	done, err := mpi.Use() // keeps MPI until the end
	if err != nil && os.Getenv("GOCCL_REQUIRE") != "all" {
		t.Skip(err)
	}
	require.NoError(t, err)
	e := open(t)
	require.NotZero(t, e.Native())
	require.NoError(t, e.Err())

	require.NoError(t, e.Supports(op.AllReduce, op.BFloat16, op.Avg, true))
	require.NoError(t, e.Supports(op.AllGather, op.Float8E4M3, op.Sum, true))
	require.EqualError(t, e.Supports(op.AllReduce, op.Float8E4M3, op.Sum, true), "MPI does not reduce 8-bit floats")
	require.EqualError(t, e.Supports(op.AllReduce, op.Float32, op.Scaled, true), "MPI has no scaling operator: use sum, then multiply")
	require.Error(t, e.Supports(op.AllReduce, op.Float32, op.Sum, false))
	require.Error(t, e.Supports(op.Kinds, op.Float32, op.Sum, true))
	_, err = e.Issue(0, nil, 0)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	_, err = e.Mark(0)
	require.Error(t, err)

	ctx := context.Background()
	heap := func(x ...float32) []float32 { return append(make([]float32, 0, len(x)), x...) }
	for kind := op.AllReduce; kind <= op.AllToAllV; kind++ {
		for _, inPlace := range []bool{false, true} {
			dst, src := heap(0, 0, 0), heap(1, 2, 3)
			if inPlace {
				dst = src
			}
			c := op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: op.Float32, Op: op.Avg, Count: 3}, DstAt: address(dst), SrcAt: address(src)}}
			switch kind {
			case op.Broadcast:
				copy(dst, src)
			case op.ReduceScatterV, op.AllGatherV, op.GatherV, op.ScatterV:
				c.DC = []int{3}
			case op.AllToAllV:
				c.DC, c.SC = []int{3}, []int{3}
			}
			require.NoError(t, e.Run(ctx, []*op.Call{&c}), "kind %d", kind)
			require.Equal(t, heap(1, 2, 3), dst, "kind %d", kind)
		}
	}
	require.NoError(t, e.Run(ctx, []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Barrier}}}}))

	dst, src := heap(0, 0), heap(4, 5)
	require.NoError(t, e.Run(ctx, []*op.Call{
		{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Op: op.Sum, Count: 1}, DstAt: address(dst), SrcAt: address(src)}},
		{Head: op.Head{Record: op.Record{Kind: op.SendRecv, Type: op.Float32, Count: 1}, SrcN: 1, DstAt: address(dst[1:]), SrcAt: address(src[1:])}},
	}))
	require.Equal(t, heap(4, 5), dst)

	half, err := e.Split(ctx, engine.Group{Size: 1})
	require.NoError(t, err)
	require.NoError(t, half.Close())
	_, err = e.Split(ctx, engine.Group{Size: 2})
	require.EqualError(t, err, "rank 0 of the 2 of this Comm is rank 0 of 1 of MPI")
	none, err := e.Split(ctx, engine.Group{Color: -1})
	require.NoError(t, err)
	require.Nil(t, none)

	var failed *engine.LibraryError
	require.ErrorAs(t, e.Run(ctx, []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Float32, Root: 9}}}}), &failed)
	require.Equal(t, "MPI_Bcast", failed.Call)

	require.NoError(t, e.Close())
	require.NoError(t, done(false))
	require.True(t, mpi.Finalized())
}
