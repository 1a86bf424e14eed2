package ccl_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Far more Comms fail at once than the log of a host holds: all of their ranks hear of all, and why.
func TestManyFailuresAtOnce(t *testing.T) {
	many := 300
	if testing.Short() {
		many = 150
	}
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		var all []*ccl.Comm
		for range many {
			c, err := world.Split(ctx, 0, world.Rank())
			require.NoError(t, err)
			all = append(all, c)
		}
		require.NoError(t, ccl.Barrier(ctx, world))
		if world.Rank() == 0 {
			for _, c := range all {
				c.Abort(errors.New("enough"))
			}
		}
		until := time.Now().Add(10 * time.Second)
		for i, c := range all {
			select {
			case <-c.Done():
			case <-time.After(time.Until(until)):
				t.Fatalf("rank %d has not heard of the failure of Comm %d of %d", world.Rank(), i, many)
			}
			require.ErrorContains(t, c.Err(), "enough")
			require.NoError(t, c.Close())
		}
		require.NoError(t, ccl.Barrier(ctx, world))
	}, ccltest.Processes(3))
}

// The same while one process is stopped, which holds up the log: the others hear of every failure still, of most of them
// without the reason, and of the reason once it is there.
func TestManyFailuresWhileOneIsStopped(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		var all []*ccl.Comm
		for range 150 {
			c, err := world.Split(ctx, 0, world.Rank())
			require.NoError(t, err)
			all = append(all, c)
		}
		pids := []int64{0, 0, 0}
		require.NoError(t, ccl.AllGather(ctx, world, pids, []int64{int64(syscall.Getpid())}))
		if world.Rank() == 0 {
			require.NoError(t, syscall.Kill(int(pids[2]), syscall.SIGSTOP))
			for _, c := range all {
				c.Abort(errors.New("enough"))
			}
		}
		if world.Rank() != 2 {
			until := time.Now().Add(15 * time.Second)
			for i, c := range all {
				select {
				case <-c.Done():
				case <-time.After(time.Until(until)):
					t.Errorf("rank %d has not heard of the failure of Comm %d", world.Rank(), i)
				}
				var e *ccl.Error
				require.ErrorAs(t, c.Err(), &e)
				require.Equal(t, ccl.ErrAborted, e.Code)
				require.Zero(t, e.Peer, "%v", e) // also where the reason has not come
			}
			pair := []int64{1}
			if world.Rank() == 1 {
				require.NoError(t, ccl.Send(ctx, world, pair, 0))
			} else {
				require.NoError(t, ccl.Recv(ctx, world, pair, 1))
				require.NoError(t, syscall.Kill(int(pids[2]), syscall.SIGCONT))
			}
		}
		for _, c := range all {
			select {
			case <-c.Done():
			case <-time.After(15 * time.Second):
				t.Fatal("the one that was stopped has not heard")
			}
			require.NoError(t, c.Close())
		}
		require.NoError(t, ccl.Barrier(ctx, world))
	}, ccltest.Processes(3))
}
