//go:build mpi && cgo

package mpi_test

import (
	"context"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// within fails the job if f has not returned after a minute, and prints where all goroutines are: MPI cannot be interrupted.
func within(t *testing.T, f func()) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() {
		debug.SetTraceback("all")
		panic(t.Name() + " hangs")
	})
	defer late.Stop()
	f()
}

// TestSplitOfAnyInts has colors and keys that differ beyond the 32 bits that MPI takes.
func TestSplitOfAnyInts(t *testing.T) {
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	for _, tc := range []struct {
		name             string
		color, key       func(r int) int
		rank, size, last int // last: the parent's rank of the child's last
	}{
		{"key", func(int) int { return 7 }, func(r int) int { return (n - r) << 32 }, n - 1 - me, n, 0},
		{"negative key", func(int) int { return 7 }, func(r int) int { return -r << 32 }, n - 1 - me, n, 0},
		{"color", func(r int) int { return r << 32 }, func(int) int { return 0 }, 0, 1, me},
		{"great color", func(int) int { return 1 << 31 }, func(int) int { return math.MinInt }, me, n, n - 1},
		{"greatest", func(int) int { return math.MaxInt }, func(r int) int { return math.MaxInt - r }, n - 1 - me, n, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			part, err := c.Split(tc.color(me), tc.key(me))
			require.NoError(t, err)
			require.NotNil(t, part)
			require.Equal(t, tc.rank, part.Rank())
			require.Equal(t, tc.size, part.Size())
			last := []int{me}
			require.NoError(t, mpi.Bcast(t.Context(), part, last, part.Size()-1))
			require.Equal(t, tc.last, last[0])
			require.NoError(t, part.Free())
		})
	}
	part, err := c.Split(math.MinInt, 0)
	require.NoError(t, err)
	require.Nil(t, part)

	node, err := c.SplitNode((n - me) << 32)
	require.NoError(t, err)
	require.Equal(t, n-1-me, node.Rank()) // the test's ranks are on one host
	require.NoError(t, node.Free())
}

// TestSplitBesideCalls has one goroutine split a communicator, which waits for all ranks, while another makes a
// call that a peer needs before it splits; and two goroutines that split in opposite order.
func TestSplitBesideCalls(t *testing.T) {
	ctx, w := context.Background(), mpi.World()
	a, err := w.Dup()
	require.NoError(t, err)
	b, err := w.Split(0, -w.Rank())
	require.NoError(t, err)
	derive := []func(c *mpi.Comm) error{
		func(c *mpi.Comm) error { return freed(c.Split(0, 0)) },
		func(c *mpi.Comm) error { return freed(c.SplitNode(0)) },
		func(c *mpi.Comm) error { return freed(c.Dup()) },
	}
	within(t, func() {
		for name, f := range derive {
			sum := func() error { return mpi.AllReduce(ctx, b, []int{0}, []int{1}, mpi.Sum) }
			if w.Rank() > 0 {
				require.NoError(t, sum())
				require.NoError(t, f(a))
				continue
			}
			split := make(chan error, 1)
			go func() { split <- f(a) }()
			require.Never(t, func() bool { return w.Size() > 1 && len(split) > 0 }, 20*time.Millisecond, time.Millisecond, name)
			require.NoError(t, sum(), name)
			require.NoError(t, <-split, name)
		}
		order := []*mpi.Comm{a, b}
		if w.Rank()%2 == 1 {
			order = []*mpi.Comm{b, a}
		}
		for range 20 {
			done := make(chan error, 2)
			for _, c := range order {
				go func() { done <- freed(c.Split(0, 0)) }()
			}
			require.NoError(t, <-done)
			require.NoError(t, <-done)
		}
	})
	require.NoError(t, a.Free())
	require.NoError(t, b.Free())
}

func freed(c *mpi.Comm, err error) error {
	if err != nil {
		return err
	}
	return c.Free()
}

// TestTags has tags beyond what MPI takes, which it would cut.
func TestTags(t *testing.T) {
	ctx, c := context.Background(), mpi.Self()
	for _, tag := range []int{1<<32 | 7, math.MaxInt32 + 1, math.MaxInt} {
		require.ErrorIs(t, mpi.Send(ctx, c, []int8{1}, mpi.ProcNull, tag), mpi.ErrTag)
		_, err := mpi.Recv(ctx, c, []int8{1}, 0, tag)
		require.ErrorIs(t, err, mpi.ErrTag)
		_, err = mpi.Irecv(c, []int8{1}, 0, tag)
		require.ErrorIs(t, err, mpi.ErrTag)
	}
	r, err := mpi.Irecv(c, []int8{1}, 0, mpi.MaxTag)
	require.NoError(t, err)
	require.NoError(t, mpi.Send(ctx, c, []int8{1}, 0, mpi.MaxTag))
	_, err = r.Wait(ctx)
	require.NoError(t, err)
}
