//go:build mpi && cgo

package mpi_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

func TestWorld(t *testing.T) {
	require.True(t, mpi.Initialized())
	require.False(t, mpi.Finalized())
	require.Equal(t, 1, mpi.Self().Size())
	require.NotEmpty(t, mpi.LibraryVersion())
	require.Regexp(t, `^(MPICH|Open MPI|Intel MPI) [0-9.]+`, mpi.Version())
	require.NotEmpty(t, mpi.LibraryPath())
	require.NotZero(t, mpi.World().Native())
	name, err := mpi.ProcessorName()
	require.NoError(t, err)
	require.NotEmpty(t, name)
	before := mpi.Wtime()
	require.GreaterOrEqual(t, mpi.Wtime(), before)
}

func TestSplit(t *testing.T) {
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	half, err := c.Split(me%2, -me) // reversed
	require.NoError(t, err)
	require.Equal(t, (n+1-me%2)/2, half.Size())
	sum := []int{0}
	require.NoError(t, mpi.AllReduce(t.Context(), half, sum, []int{me}, mpi.Sum))
	want := 0
	for r := me % 2; r < n; r += 2 {
		want += r
		if r > me {
			require.Positive(t, half.Rank())
		}
	}
	require.Equal(t, []int{want}, sum)
	require.NoError(t, half.Free())

	color := 0
	if me == 0 {
		color = -1
	}
	others, err := c.Split(color, 0)
	require.NoError(t, err)
	if me == 0 {
		require.Nil(t, others)
	} else {
		require.Equal(t, n-1, others.Size())
		require.NoError(t, others.Free())
	}

	node, err := c.SplitNode(0)
	require.NoError(t, err)
	require.LessOrEqual(t, node.Size(), n)
	require.NoError(t, node.Free())
}

func TestFreed(t *testing.T) {
	c, err := mpi.World().Dup()
	require.NoError(t, err)
	require.NoError(t, c.Free())
	require.Zero(t, c.Native())
	require.ErrorIs(t, c.Free(), mpi.ErrComm)
	require.ErrorIs(t, mpi.Barrier(t.Context(), c), mpi.ErrComm)
	_, err = c.Dup()
	require.EqualError(t, err, "mpi: Dup: the communicator was freed (MPI_ERR_COMM)")
	_, err = mpi.Ibarrier(c)
	require.ErrorIs(t, err, mpi.ErrComm)
	require.ErrorIs(t, mpi.World().Free(), mpi.ErrComm)
}

// TestGoroutines has several communicators in use at once, blocked and polling, on any threads.
func TestGoroutines(t *testing.T) {
	if mpi.ThreadLevel() != mpi.Multiple {
		t.Log("calls take turns")
	}
	const comms, calls = 4, 100
	var wg sync.WaitGroup
	for i := range comms {
		c, err := mpi.World().Dup()
		require.NoError(t, err)
		ctx := context.Background()
		if i%2 == 1 {
			ctx = t.Context()
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range calls {
				dst := []int{0}
				if err := mpi.AllReduce(ctx, c, dst, []int{j}, mpi.Sum); err != nil || dst[0] != j*c.Size() {
					t.Errorf("communicator %d, call %d: %d, %v", i, j, dst[0], err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

func TestBootstrap(t *testing.T) {
	c := mpi.World()
	mine := make([]byte, c.Rank()*10)
	for i := range mine {
		mine[i] = byte(c.Rank() + i)
	}
	all, err := c.AllGather(t.Context(), mine)
	require.NoError(t, err)
	require.Len(t, all, c.Size())
	for r, b := range all {
		require.Len(t, b, 10*r)
		for i := range b {
			require.Equal(t, byte(r+i), b[i])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.AllGather(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}
