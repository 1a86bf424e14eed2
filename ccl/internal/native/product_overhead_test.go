//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/gpu"
)

// promised is what a Queue.AllReduce may cost more than the call in C; the test asserts ten times that, since machines
// are shared.
const promised = 60 * time.Nanosecond

// TestProductOverhead issues calls that the fake library does not run, in turns with the loop in C.
func TestProductOverhead(t *testing.T) {
	rounds, calls := 15, 1_000_000/15
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
		b, in := ccl.Device(x), ccl.InPlace()
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
			bare := lib.Loop(c.Native(), h, at, 1, calls)
			require.Positive(t, bare)
			more = append(more, (mine-bare)/time.Duration(calls))
			ours, theirs = ours+mine, theirs+bare
		}
		require.NoError(t, last.Wait(t.Context()))
		slices.Sort(more)
		n := time.Duration(rounds * calls)
		t.Logf("Queue.AllReduce: %v in Go, %v in C; the differences of %d rounds are %v at least, %v in the median", ours/n, theirs/n, rounds, more[0], more[rounds/2])
		if !testing.Short() {
			require.Less(t, more[0], 10*promised) // the least: others may be at work here
		}
	})
}
