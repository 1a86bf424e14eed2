package ccl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A queued call that waits for another process leaves the program the one processor that Go has. While the program computes
// beside it, some thread of the process always runs or waits for a core: the call does not sleep with Go's processor in its
// hands. And together they run little longer than the computation alone: the call does not look all the time. Neither
// depends on what else the machine does; of both the best round counts.
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
		for compute(t, steps).ran < 60*time.Millisecond { // so long that the call has its turn
			steps *= 2
		}
		s := ccl.NewHostStream()
		defer s.Close()
		alone, beside, busy := time.Hour, time.Hour, 0.0
		for range rounds {
			alone = min(alone, compute(t, steps).ran)
			w := c.On(s).Recv(ccl.Host(x), 1)
			u := compute(t, steps)
			beside, busy = min(beside, u.ran), max(busy, float64(u.ran+u.waited)/float64(u.took))
			require.NoError(t, ccl.Barrier(ctx, done))
			require.NoError(t, w.Wait(ctx))
		}
		t.Logf("ran for %v alone, %v beside a call, which left it %.0f %% of the time", alone, beside, 100*busy)
		require.Less(t, beside, alone*14/10)
		require.Greater(t, busy, .7)
	}, ccltest.Processes(2))
}

// share is how long something took, and how long in that time threads of this process ran and waited for a core to run on.
type share struct{ took, ran, waited time.Duration }

var computed uint64

// compute computes, without a call that gives way.
func compute(t testing.TB, steps int) share {
	began, before := time.Now(), threads(t)
	h := computed
	for i := range steps {
		h = h*6364136223846793005 + uint64(i)
	}
	computed = h
	took, after := time.Since(began), threads(t)
	return share{took, after.ran - before.ran, after.waited - before.waited}
}

// threads is what all threads of this process have used.
func threads(t testing.TB) (u share) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) { // the thread has ended
			continue
		}
		var ran, waited int64
		_, err = fmt.Sscan(string(text), &ran, &waited)
		require.NoError(t, err)
		u.ran, u.waited = u.ran+time.Duration(ran), u.waited+time.Duration(waited)
	}
	return u
}
