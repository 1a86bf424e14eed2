//go:build fault && linux

package ccl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/inject"
)

func init() { roles["stopped in a read"] = stoppedInRead }

// stoppedInRead is a rank of TestStoppedInRead.
func stoppedInRead(ctx context.Context, t *testing.T, _ string) {
	world := joined(ctx, t, &ccl.Options{PeerTimeout: stoppedPeer})
	c, err := world.Split(ctx, 0, world.Rank())
	require.NoError(t, err)
	x := make([]int64, 256<<10) // which are read where they lie
	fill := func(with int64) {
		for i := range x {
			x[i] = with
		}
	}
	fill(int64(1 + c.Rank()))
	require.NoError(t, ccl.Barrier(ctx, c))
	if c.Rank() == 1 {
		require.NoError(t, inject.Plan("cpu.read:1:stop:"+stoppedFor.String()))
		began := time.Now()
		err := ccl.Broadcast(ctx, c, x, 0)
		require.GreaterOrEqual(t, time.Since(began), stoppedFor, "it has not been stopped where it reads")
		require.FileExists(t, filepath.Join(os.Getenv("CCL_TEST_DIR"), "closed.0"))
		require.ErrorIs(t, err, ccl.ErrRankLost, "element 0 is %d", x[0])
		mark(t, "over")
		fmt.Println("rank 1: has got an error")
		return
	}
	if err = ccl.Broadcast(ctx, c, x, 0); err == nil { // rank 2 needs only the root
		err = ccl.Barrier(ctx, c)
	}
	require.ErrorIs(t, err, ccl.ErrRankLost)
	fill(-7)
	require.NoError(t, c.Close())
	mark(t, fmt.Sprintf("closed.%d", world.Rank()))
	require.Eventually(t, func() bool { return isMarked("over") }, long, time.Millisecond, "the stopped rank has gone on")
	fmt.Printf("rank %d: has closed\n", world.Rank())
}

// A rank is stopped in a call, before it reads what another has offered. The others give it up, close the Comm, and use their memory for
// something else. When the rank goes on, the Comm still tells it that its call has failed.
func TestStoppedInRead(t *testing.T) {
	t.Parallel()
	out := processes(t, 3, 0, "stopped in a read", "", "CCL_TEST_DIR="+t.TempDir(), "GOCCL_SHM_READ=1")
	for _, says := range []string{"rank 0: has closed\n", "rank 1: has got an error\n", "rank 2: has closed\n"} {
		require.Contains(t, out, says)
	}
}
