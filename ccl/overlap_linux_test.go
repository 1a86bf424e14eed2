package ccl_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A queued call that waits for another process leaves the program the one processor that it has: a computation takes no
// longer beside it. Of both the shortest time counts, since other programs run here, too.
func TestQueuedCallLeavesTheProcessor(t *testing.T) {
	const rounds = 10
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		ctx := t.Context()
		done, err := c.Split(ctx, 0, c.Rank())
		require.NoError(t, err)
		defer done.Close()
		x := make([]float32, 1000)
		if c.Rank() == 1 {
			for range rounds {
				require.NoError(t, ccl.Barrier(ctx, done))
				require.NoError(t, ccl.Send(ctx, c, x, 0))
			}
			return
		}
		steps := 1 << 20
		for compute(steps) < 60*time.Millisecond { // so long that the call has its turn
			steps *= 2
		}
		s := ccl.NewHostStream()
		defer s.Close()
		alone, beside := time.Hour, time.Hour
		for range rounds {
			alone = min(alone, compute(steps))
			w := c.On(s).Recv(ccl.Host(x), 1)
			beside = min(beside, compute(steps))
			require.NoError(t, ccl.Barrier(ctx, done))
			require.NoError(t, w.Wait(ctx))
		}
		t.Logf("%v alone, %v beside a call", alone, beside)
		require.Less(t, beside, alone*14/10)
	}, ccltest.Processes(2))
}

var computed uint64

// compute returns how long it has computed, without a call that gives way.
func compute(steps int) time.Duration {
	began := time.Now()
	h := computed
	for i := range steps {
		h = h*6364136223846793005 + uint64(i)
	}
	computed = h
	return time.Since(began)
}
