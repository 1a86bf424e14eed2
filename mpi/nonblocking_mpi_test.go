//go:build mpi && cgo

package mpi_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestNonblocking has all of them under way at once, and their memory in use by nobody else.
func TestNonblocking(t *testing.T) {
	c := mpi.World()
	n, me, k := c.Size(), c.Rank(), 1000
	var requests []*mpi.Request
	begin := func(r *mpi.Request, err error) {
		require.NoError(t, err)
		requests = append(requests, r)
	}
	bcast, all, scan := vector[int64](me, k), make([]int64, k), make([]int64, k)
	part, gathered1, to := make([]int64, k), make([]int64, n*k), make([]int64, n*k)
	got := make([]int64, k)
	begin(mpi.Ibarrier(c))
	begin(mpi.Ibcast(c, bcast, n-1))
	begin(mpi.Iallreduce(c, all, vector[int64](me, k), mpi.Sum))
	begin(mpi.Iscan(c, scan, vector[int64](me, k), mpi.Sum))
	before := make([]int64, k)
	begin(mpi.Iexscan(c, before, vector[int64](me, k), mpi.Sum))
	begin(mpi.Ireducescatter(c, part, vector[int64](me, n*k), mpi.Sum))
	begin(mpi.Iallgather(c, gathered1, vector[int64](me, k)))
	begin(mpi.Ialltoall(c, to, vector[int64](me, n*k)))
	var root, rootAll []int64
	if me == 0 {
		root, rootAll = make([]int64, k), make([]int64, n*k)
	}
	begin(mpi.Ireduce(c, root, vector[int64](me, k), mpi.Max, 0))
	begin(mpi.Igather(c, rootAll, vector[int64](me, k), 0))
	begin(mpi.Iscatter(c, got, vector[int64](0, n*k), 0))
	begin(c.Start(&mpi.Call{Kind: mpi.KindBarrier}))
	for range 5 {
		runtime.GC() // what nobody else refers to must stay
	}
	for _, r := range requests {
		_, err := r.Wait(context.Background())
		require.NoError(t, err)
	}
	require.Equal(t, vector[int64](n-1, k), bcast)
	require.Equal(t, reduced[int64](mpi.Sum, n-1, k), all)
	require.Equal(t, reduced[int64](mpi.Sum, me, k), scan)
	if me > 0 {
		require.Equal(t, reduced[int64](mpi.Sum, me-1, k), before)
	}
	require.Equal(t, reduced[int64](mpi.Sum, n-1, n*k)[me*k:(me+1)*k], part)
	require.Equal(t, gathered[int64](equal(n, k)), gathered1)
	require.Equal(t, exchanged[int64](me, equal(n, k), equal(n, k)), to)
	require.Equal(t, vector[int64](0, n*k)[me*k:(me+1)*k], got)
	if me == 0 {
		require.Equal(t, reduced[int64](mpi.Max, n-1, k), root)
		require.Equal(t, gathered[int64](equal(n, k)), rootAll)
	}
}

// TestForgottenRequest drops a request: it and its memory live until it is complete.
func TestForgottenRequest(t *testing.T) {
	c := mpi.Self()
	_, err := mpi.Isend(c, []int64{42}, 0, 5)
	require.NoError(t, err)
	for range 5 {
		runtime.GC()
	}
	buf := []int64{0}
	_, err = mpi.Recv(t.Context(), c, buf, 0, 5)
	require.NoError(t, err)
	require.Equal(t, []int64{42}, buf)
}
