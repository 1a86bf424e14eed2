//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// promised is what a Queue.AllReduce may cost more than the call in C, in the median. The test asserts ten times that,
// since machines are shared; with -promise, on a quiet one, that itself.
const promised = 60 * time.Nanosecond

var promise = flag.Bool("promise", false, "hold Queue.AllReduce to what is promised of it: for a quiet machine")

// TestProductOverhead issues calls that the fake library does not run, in turns with the loop in C.
func TestProductOverhead(t *testing.T) {
	const rounds = 15 // the median is between the 4th and the 12th with 96 %
	calls := 1_000_000 / rounds
	if testing.Short() {
		calls /= 20
	}
	t.Setenv("FAKE_NCCL_IDLE", "1")
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		r := begin(t, c, rt)
		x := r.mem(1)
		at, _ := x.Ptr()
		h, _ := r.s.Handle()
		lib, err := cside.Open(os.Getenv(libraryOf[name]))
		require.NoError(t, err)
		b, in := ccl.BufOfMemory(x), ccl.InPlace()
		var last ccl.Work
		issue := func(n int) {
			for range n {
				last = r.q.AllReduce(b, in, ccl.Sum)
			}
		}
		issue(1000)
		require.Zero(t, testing.AllocsPerRun(1000, func() { issue(1) }))
		var more []time.Duration
		var ours, theirs time.Duration
		for range rounds {
			start := time.Now()
			issue(calls)
			mine := time.Since(start)
			bare := lib.Loop(cside.Asked[name], c.Native(), h, at, 1, calls)
			require.Positive(t, bare)
			more = append(more, (mine-bare)/time.Duration(calls))
			ours, theirs = ours+mine, theirs+bare
		}
		require.NoError(t, last.Wait(t.Context()))
		slices.Sort(more)
		n := time.Duration(rounds * calls)
		t.Logf("Queue.AllReduce: %v in Go, %v in C; %v more in the median of %d rounds (95 %% interval %v to %v)",
			ours/n, theirs/n, more[rounds/2], rounds, more[rounds/2-4], more[rounds/2+4])
		switch {
		case *promise:
			require.LessOrEqual(t, more[rounds/2], promised)
		case !testing.Short():
			require.Less(t, more[rounds/2], 10*promised)
		}
	})
}
