//go:build mpi && cgo

package mpi_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestRefusedTypes sends this rank large messages, which need types that MPI has to make. test/mpi runs it with a
// library that refuses to make some, and counts the types that are left.
func TestRefusedTypes(t *testing.T) {
	mpi.SetLimit(t, 4)
	src, failed := vector[int32](1, 9), 0
	for _, way := range ways(t) {
		for range 500 {
			dst := make([]int32, 9)
			if _, err := mpi.SendRecv(way.ctx, mpi.Self(), dst, 0, src, 0, 0); err != nil {
				failed++
				continue
			}
			require.Equal(t, src, dst)
		}
	}
	if os.Getenv("GOCCL_MPI_TEST_REFUSES") == "" {
		require.Zero(t, failed)
	} else {
		require.NotZero(t, failed)
	}
	require.Zero(t, mpi.Abandoned())
}

// TestRefusedSendOfAnExchange has MPI refuse the Send of a SendRecv whose Recv has begun: the Recv is taken back, and the
// communicator can be used on.
func TestRefusedSendOfAnExchange(t *testing.T) {
	if !judges(t) {
		return
	}
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			c, err := mpi.World().Dup()
			require.NoError(t, err)
			me := c.Rank()
			dst := []int32{-1}
			bad := mpi.Call{Kind: mpi.KindSendRecv, Type: mpi.TypeInt32, Root: me, To: 99}
			require.ErrorIs(t, c.Unchecked(way.ctx, &bad), mpi.ErrRank)
			require.Zero(t, mpi.Abandoned())
			st, err := mpi.SendRecv(context.Background(), c, dst, me, []int32{int32(me)}, me, 0)
			require.NoError(t, err)
			require.Equal(t, mpi.Status{Source: me, Count: 1}, st)
			require.Equal(t, int32(me), dst[0])
			require.NoError(t, c.Free())
		})
	}
}
