//go:build mpi && cgo

package mpi_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// far is what rank r has at i: small, and different where 2^31, or a piece, begins anew.
func far(r, i int) int8 { return int8((i^i>>8^i>>16^i>>24^i>>31)&63) + int8(r) }

func fill(buf []int8, r int) {
	for i := range buf {
		buf[i] = far(r, i)
	}
}

// where is the first element of buf that is not what it should be, or -1.
func where(buf []int8, want func(i int) int8) int {
	for i, x := range buf {
		if x != want(i) {
			return i
		}
	}
	return -1
}

// TestLargeCounts has really more elements than an int of C counts. All ranks of a host have 2.1 GB each,
// and what the library adds to that.
func TestLargeCounts(t *testing.T) {
	if os.Getenv("GOCCL_TEST_LARGE") != "1" {
		t.Skip("hardware: 2.1 GB a rank, and as much again in the library, are used if GOCCL_TEST_LARGE=1")
	}
	ctx, c := context.Background(), mpi.World()
	last := c.Size() - 1
	buf := make([]int8, math.MaxInt32+12_346)

	began := time.Now()
	passed := func(what string) { t.Logf("%s after %v", what, time.Since(began).Round(time.Second)) }

	fill(buf, c.Rank())
	require.NoError(t, mpi.Bcast(ctx, c, buf, last))
	require.Equal(t, -1, where(buf, func(i int) int8 { return far(last, i) }), "Bcast")
	passed("Bcast")

	fill(buf, c.Rank())
	require.NoError(t, mpi.AllReduce(ctx, c, buf, buf, mpi.Max)) // an operator of MPI's
	require.Equal(t, -1, where(buf, func(i int) int8 { return far(last, i) }), "Max")
	passed("Max")

	fill(buf, c.Rank())
	require.NoError(t, mpi.AllReduce(ctx, c, buf, buf, mpi.Sum)) // and one of this package
	require.Equal(t, -1, where(buf, func(i int) int8 {
		sum := int8(0)
		for r := range last + 1 {
			sum += far(r, i)
		}
		return sum
	}), "Sum")
	passed("Sum")

	fill(buf, c.Rank())
	switch {
	case last == 0:
	case c.Rank() == last:
		require.NoError(t, mpi.Send(ctx, c, buf, 0, 4))
	case c.Rank() == 0:
		st, err := mpi.Recv(ctx, c, buf, last, 4)
		require.NoError(t, err)
		require.Equal(t, mpi.Status{Source: last, Tag: 4, Count: len(buf)}, st)
		require.Equal(t, -1, where(buf, func(i int) int8 { return far(last, i) }), "Recv")
	}
	passed("Send and Recv")
}

// TestLargeFile reads and writes more bytes at once than an int of C counts, beyond where an int of C can point.
func TestLargeFile(t *testing.T) {
	if os.Getenv("GOCCL_TEST_LARGE") != "1" {
		t.Skip("hardware: 2.1 GB of memory a rank, and of disk for all, are used if GOCCL_TEST_LARGE=1")
	}
	ctx, c := context.Background(), mpi.World()
	const offset = 3 << 30
	f, err := mpi.OpenFile(ctx, c, filepath.Join(shared(t), "file"), mpi.ReadWrite|mpi.Create)
	require.NoError(t, err)
	buf := make([]int8, math.MaxInt32+12_346)
	fill(buf, 1)
	part := buf
	if c.Rank() > 0 {
		part = nil
	}
	n, err := mpi.WriteAtAll(ctx, f, part, offset)
	require.NoError(t, err)
	require.Equal(t, len(part), n)
	require.NoError(t, f.Sync(ctx))
	clear(buf)
	n, err = mpi.ReadAtAll(ctx, f, buf, offset)
	require.NoError(t, err)
	require.Equal(t, len(buf), n)
	require.Equal(t, -1, where(buf, func(i int) int8 { return far(1, i) }))
	size, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, int64(offset+len(buf)), size)
	require.NoError(t, f.Close())
}
