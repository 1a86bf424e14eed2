package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() { roles["stopped with a spare"] = stoppedWithASpare }

// stoppedWithASpare is a rank of TestReplaceStopped: rank 1 is stopped in a step until the others have replaced it. Then rank 0 lets
// it go on.
func stoppedWithASpare(ctx context.Context, t *testing.T, _ string) {
	me := os.Getenv("GOCCL_RANK")
	c := joined(ctx, t, &ccl.Options{Spares: 1, PeerTimeout: stoppedPeer})
	stopped := me == "1"
	last, _ := healed(ctx, t, c, 20, trouble{
		step: func(_ *ccl.Comm, step int) {
			if stopped && step == 10 {
				mark(t, "pid")
				stopHere(t)
			}
		},
		ends: func(err error) bool {
			fmt.Printf("rank %s has ended: %v\n", me, err)
			mark(t, "ended")
			return stopped && errors.Is(err, ccl.ErrRankLost)
		},
	})
	if stopped {
		return
	}
	if me == "0" {
		b, err := os.ReadFile(filepath.Join(os.Getenv("CCL_TEST_DIR"), "pid"))
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(b))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	require.NoError(t, keepCalling(ctx, last, func() bool { return isMarked("ended") }))
	fmt.Printf("rank %s: %v\n", me, members(t, last, last.Rank()))
}

// A rank that is stopped is replaced once it has been silent for PeerTimeout. When it goes on it is told so, and the others, which are
// whole, do not notice.
func TestReplaceStopped(t *testing.T) {
	for _, hosts := range []int{0, 4} {
		t.Run(fmt.Sprintf("%d hosts", max(hosts, 1)), func(t *testing.T) {
			t.Parallel()
			text := processes(t, 4, hosts, "stopped with a spare", "", "CCL_TEST_DIR="+t.TempDir())
			require.Contains(t, text, "rank 1 has ended: ccl: rank 1: Replace: rank 1 lost: the others have given this rank up\n")
			for _, r := range []int{0, 2, 3} {
				require.Contains(t, text, fmt.Sprintf("rank %d: [0 1 2]\n", r))
			}
		})
	}
}
