//go:build mpi && cgo

package mpi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

func TestPointToPoint(t *testing.T) {
	for _, limit := range limits {
		for _, way := range ways(t) {
			t.Run(fmt.Sprintf("%s, limit %d", way.name, limit), func(t *testing.T) {
				mpi.SetLimit(t, limit)
				ring(t, way.ctx)
			})
		}
	}
}

// ring passes vectors around, in all the ways there are.
func ring(t *testing.T, ctx context.Context) {
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	next, prev := (me+1)%n, (me+n-1)%n
	for _, k := range []int{0, 1, 13} {
		dst := make([]float32, k)
		st, err := mpi.SendRecv(ctx, c, dst, prev, vector[float32](me, k), next, 7)
		require.NoError(t, err)
		require.Equal(t, mpi.Status{Source: prev, Tag: 7, Count: k}, st)
		require.Equal(t, vector[float32](prev, k), dst)

		clear(dst)
		send, err := mpi.Isend(c, vector[float32](me, k), next, 8)
		require.NoError(t, err)
		st, err = mpi.Recv(ctx, c, dst, prev, 8)
		require.NoError(t, err)
		require.Equal(t, mpi.Status{Source: prev, Tag: 8, Count: k}, st)
		require.Equal(t, vector[float32](prev, k), dst)
		_, err = send.Wait(ctx)
		require.NoError(t, err)
		_, err = send.Wait(ctx) // once more
		require.NoError(t, err)

		clear(dst)
		recv, err := mpi.Irecv(c, dst, prev, mpi.AnyTag)
		require.NoError(t, err)
		require.NoError(t, mpi.Send(ctx, c, vector[float32](me, k), next, 9))
		for done := false; !done; {
			done, st, err = recv.Test()
			require.NoError(t, err)
		}
		require.Equal(t, mpi.Status{Source: prev, Tag: 9, Count: k}, st)
		require.Equal(t, vector[float32](prev, k), dst)
	}
	require.NoError(t, mpi.Send(ctx, c, []int8{1}, mpi.ProcNull, 0))
	st, err := mpi.Recv(ctx, c, []int8{1}, mpi.ProcNull, 0)
	require.NoError(t, err)
	require.Equal(t, mpi.ProcNull, st.Source)
	require.Zero(t, st.Count)
	require.NoError(t, mpi.Barrier(ctx, c))
}

func TestAnySource(t *testing.T) {
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	if me > 0 {
		require.NoError(t, mpi.Send(t.Context(), c, []int64{int64(me)}, 0, me))
	} else {
		seen := map[int]bool{}
		for range n - 1 {
			buf := make([]int64, 4) // longer than the message
			st, err := mpi.Recv(t.Context(), c, buf, mpi.AnySource, mpi.AnyTag)
			require.NoError(t, err)
			require.Equal(t, mpi.Status{Source: int(buf[0]), Tag: int(buf[0]), Count: 1}, st)
			seen[st.Source] = true
		}
		require.Len(t, seen, n-1)
	}
	require.NoError(t, mpi.Barrier(t.Context(), c))
}

func TestTruncation(t *testing.T) {
	if !judges(t) {
		return
	}
	c, err := mpi.Self().Dup()
	require.NoError(t, err)
	send, err := mpi.Isend(c, []int64{1, 2, 3}, 0, 0)
	require.NoError(t, err)
	_, err = mpi.Recv(context.Background(), c, make([]int64, 1), 0, 0)
	require.ErrorIs(t, err, mpi.ErrTruncate)
	_, _ = send.Wait(context.Background())
}

// TestContextEndsDuringRecv takes the receive back, and goes on with the communicator.
func TestContextEndsDuringRecv(t *testing.T) {
	c := mpi.World()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	buf := []int32{-1}
	_, err := mpi.Recv(ctx, c, buf, mpi.AnySource, 99)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, mpi.ErrAbandoned)
	require.Zero(t, mpi.Abandoned())
	_, err = mpi.Recv(ctx, c, buf, mpi.AnySource, 99)
	require.EqualError(t, err, "mpi: Recv: not begun: context deadline exceeded")

	// The message that comes now goes to the next one who asks.
	require.NoError(t, mpi.Barrier(t.Context(), c))
	send, err := mpi.Isend(c, []int32{int32(c.Rank())}, c.Rank(), 99)
	require.NoError(t, err)
	st, err := mpi.Recv(t.Context(), c, buf, mpi.AnySource, 99)
	require.NoError(t, err)
	require.Equal(t, mpi.Status{Source: c.Rank(), Tag: 99, Count: 1}, st)
	require.Equal(t, []int32{int32(c.Rank())}, buf)
	_, err = send.Wait(t.Context())
	require.NoError(t, err)
}

func TestContextEndsDuringIrecv(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := mpi.Irecv(mpi.World(), []int32{0}, mpi.AnySource, 98)
	require.NoError(t, err)
	cancel()
	for range 2 { // the same again
		_, err = r.Wait(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, mpi.ErrAbandoned)
		_, err = r.Wait(context.Background())
		require.ErrorIs(t, err, mpi.ErrAbandoned)
		done, st, err := r.Test()
		require.True(t, done)
		require.Zero(t, st)
		require.EqualError(t, err, "mpi: Recv: cancelled, nothing received: context canceled")
	}
}

// TestContextEndsDuringBarrier leaves the barrier to MPI, and the communicator with it.
func TestContextEndsDuringBarrier(t *testing.T) {
	if mpi.World().Size() == 1 {
		return // the barrier of one rank does not wait
	}
	c, err := mpi.World().Dup()
	require.NoError(t, err)
	if c.Rank() == 0 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := mpi.Barrier(ctx, c)
		require.ErrorIs(t, err, mpi.ErrAbandoned)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, mpi.Abandoned())
		require.ErrorIs(t, mpi.Barrier(t.Context(), c), mpi.ErrAbandoned)
		require.ErrorIs(t, mpi.Finalize(), mpi.ErrAbandoned)
	}
	require.NoError(t, mpi.Barrier(t.Context(), mpi.World()))
	if c.Rank() > 0 {
		require.NoError(t, mpi.Barrier(t.Context(), c))
	}
	require.Eventually(t, func() bool { return mpi.Abandoned() == 0 }, 10*time.Second, time.Millisecond)
}
