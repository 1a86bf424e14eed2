//go:build mpi && cgo

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// judges reports whether the library looks at arguments at all: the wheel of MPICH 5 is built without.
func judges(t *testing.T) bool {
	if badRoot(context.Background(), mpi.Self()) == nil {
		t.Log("this library was built without error checking")
		return false
	}
	return true
}

func badRoot(ctx context.Context, c *mpi.Comm) error {
	return c.Unchecked(ctx, &mpi.Call{Kind: mpi.KindBcast, Type: mpi.TypeInt32, Root: 99})
}

// TestErrorsOfMPI has errors that MPI finds, on each rank by itself.
func TestErrorsOfMPI(t *testing.T) {
	if !judges(t) {
		return
	}
	c, err := mpi.World().Dup()
	require.NoError(t, err)
	for _, way := range ways(t) {
		for _, tc := range []struct {
			name string
			call mpi.Call
			want mpi.Class
		}{
			{"root", mpi.Call{Kind: mpi.KindBcast, Root: 99}, mpi.ErrRoot},
			{"negative root", mpi.Call{Kind: mpi.KindBcast, Root: -77}, mpi.ErrRoot},
			{"rank", mpi.Call{Kind: mpi.KindSend, To: 99}, mpi.ErrRank},
			{"count", mpi.Call{Kind: mpi.KindSend, N: -5}, mpi.ErrCount},
			{"tag", mpi.Call{Kind: mpi.KindSend, Tag: -77}, mpi.ErrTag},
		} {
			t.Run(way.name+", "+tc.name, func(t *testing.T) {
				tc.call.Type = mpi.TypeInt32
				err := c.Unchecked(way.ctx, &tc.call)
				require.ErrorIs(t, err, tc.want)
				var e *mpi.Error
				require.True(t, errors.As(err, &e))
				require.NotZero(t, e.Code)
				require.NotEmpty(t, e.Text)
				require.NotEqual(t, "no text", e.Text)
			})
		}
	}
}

func TestInitTwice(t *testing.T) {
	require.EqualError(t, mpi.Init(), "mpi: Init: MPI is initialised already")
	done, err := mpi.Use()
	require.NoError(t, err)
	require.NoError(t, done(false)) // the test's Init, not Use's: it does not finalise
	require.NoError(t, done(false)) // twice is once
	require.True(t, mpi.Initialized())
}

// TestRefused has what does not get as far as MPI; the communicator is as it was.
func TestRefused(t *testing.T) {
	ctx, c := context.Background(), mpi.World()
	n := c.Size()
	for _, tc := range []struct {
		name string
		call func() error
		want string
	}{
		{"lengths", func() error { return mpi.AllReduce(ctx, c, make([]int8, 2), make([]int8, 3), mpi.Sum) },
			"mpi: AllReduce: dst has 2 elements, but should have 3 (MPI_ERR_COUNT)"},
		{"operator", func() error { return mpi.AllReduce(ctx, c, make([]int8, 2), make([]int8, 2), 9) },
			"mpi: AllReduce: Op(9) is not an operator (MPI_ERR_OP)"},
		{"counts", func() error { return mpi.AllGatherV(ctx, c, []int8{}, make([]int, n+1), []int8{}) },
			"MPI_ERR_COUNT"},
		{"special rank", func() error { return mpi.Send(ctx, c, []int8{1}, mpi.AnySource, 0) },
			"mpi: Send: no rank -1 to send to: the ranks are 0 to "},
		{"root", func() error { return mpi.Bcast(ctx, c, []int8{1}, n) },
			fmt.Sprintf("mpi: Bcast: no rank %d: the ranks are 0 to %d (MPI_ERR_ROOT)", n, n-1)},
		{"rank", func() error { _, err := mpi.Recv(ctx, c, []int8{1}, n, 0); return err },
			fmt.Sprintf("mpi: Recv: no rank %d to receive from: the ranks are 0 to %d (MPI_ERR_RANK)", n, n-1)},
		{"special tag", func() error { return mpi.Send(ctx, c, []int8{1}, 0, -1) },
			"mpi: Send: a tag of -1 (MPI_ERR_TAG)"},
		{"kind", func() error { _, err := c.Do(ctx, &mpi.Call{}); return err },
			"mpi: Kind(0): no such kind of call (MPI_ERR_ARG)"},
		{"type", func() error { _, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindBcast, Type: 99}); return err },
			"mpi: Bcast: Type(99) is not a type (MPI_ERR_TYPE)"},
		{"type of a barrier", func() error { _, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindBarrier, Type: 200}); return err },
			"mpi: Barrier: Type(200) is not a type (MPI_ERR_TYPE)"},
		{"operator of a barrier", func() error { _, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindBarrier, Op: 200}); return err },
			"mpi: Barrier: Op(200) is not an operator (MPI_ERR_OP)"},
		{"counts of a message", func() error {
			_, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindSend, Type: mpi.TypeInt8, To: mpi.ProcNull, DC: []int{}, SC: []int{1}})
			return err
		}, "mpi: Send: counts by rank, which it does not take (MPI_ERR_COUNT)"},
		{"second counts", func() error {
			_, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindAllReduce, Type: mpi.TypeInt8, SC: []int{1}})
			return err
		}, "mpi: AllReduce: counts by rank, which it does not take (MPI_ERR_COUNT)"},
		{"negative", func() error {
			_, err := c.Do(ctx, &mpi.Call{Kind: mpi.KindBcast, Type: mpi.TypeInt8, N: -1})
			return err
		}, "mpi: Bcast: a count of -1 (MPI_ERR_COUNT)"},
	} {
		t.Run(tc.name, func(t *testing.T) { require.ErrorContains(t, tc.call(), tc.want) })
	}
	require.NoError(t, mpi.Barrier(ctx, c))
}
