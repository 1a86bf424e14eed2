package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() { roles["no files"] = shrinksWithoutFiles }

// shrinksWithoutFiles: the victim may open no file any more when it calls Shrink.
func shrinksWithoutFiles(ctx context.Context, t *testing.T, arg string) {
	victim, err := strconv.Atoi(arg)
	require.NoError(t, err)
	world := joined(ctx, t, nil)
	me := world.Rank()
	_ = ccl.Barrier(ctx, world) // which the Abort may end
	if me == 0 {
		world.Abort(errors.New("on purpose"))
	}
	<-world.Done()
	var limit syscall.Rlimit
	if me == victim {
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
		next, err := syscall.Dup(0)
		require.NoError(t, err)
		require.NoError(t, syscall.Close(next))
		limit.Cur = uint64(next)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	}
	began := time.Now()
	next, err := world.Shrink(ctx)
	if me == victim {
		var e *ccl.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, ccl.ErrBackend, e.Code, "%v", err)
		require.Equal(t, me, e.Peer)
		require.ErrorContains(t, err, "too many open files")
		require.Less(t, time.Since(began), 10*time.Second)
		fmt.Printf("rank %d: cannot\n", me)
		_, err = world.Shrink(ctx)
		require.ErrorAs(t, err, &e)
		require.Equal(t, ccl.ErrRankLost, e.Code, "%v", err)
		require.Equal(t, me, e.Peer)
		return
	}
	require.NoError(t, err)
	defer next.Close()
	all := make([]int, next.Size())
	require.NoError(t, ccl.AllGather(ctx, next, all, []int{me}))
	fmt.Printf("rank %d: %v\n", me, all)
}

// A rank that cannot connect with the others is left out: it gets an error, and all others a Comm without it, the same.
func TestShrinkWithoutFiles(t *testing.T) {
	for _, tc := range []struct {
		n, hosts, victim int
		left             []int
	}{{3, 3, 2, []int{0, 1}}, {3, 3, 0, []int{1, 2}}, {4, 2, 3, []int{0, 1, 2}}, {4, 2, 0, []int{1, 2, 3}}} {
		t.Run(fmt.Sprintf("rank %d of %d on %d hosts", tc.victim, tc.n, tc.hosts), func(t *testing.T) {
			out := processes(t, tc.n, tc.hosts, "no files", strconv.Itoa(tc.victim))
			require.Contains(t, out, fmt.Sprintf("rank %d: cannot\n", tc.victim), out)
			for _, r := range tc.left {
				require.Contains(t, out, fmt.Sprintf("rank %d: %v\n", r, tc.left), out)
			}
		})
	}
}
