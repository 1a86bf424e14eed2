//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"flag"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// promised is what a Queue.AllReduce may add to the same call through cgo and nothing else, the least of each: in place, and with
// two Bufs of one memory. The test asserts ten times that, since machines are shared; with -promise, on a quiet one, that itself.
var promised = map[string]time.Duration{inPlace: 32 * time.Nanosecond, twoBufs: 45 * time.Nanosecond}

const (
	inC     = "C, a loop"
	alone   = "cgo, the same call alone"
	inPlace = "Queue.AllReduce, in place"
	twoBufs = "Queue.AllReduce, two Bufs"
)

var promise = flag.Bool("promise", false, "hold Queue.AllReduce to what is promised of it: for a quiet machine")

// TestProductOverhead issues calls that the fake library does not run, and makes the same ones in C and through cgo, in turns.
func TestProductOverhead(t *testing.T) {
	rounds, calls := 101, 10_000 // short ones, of which some are undisturbed
	if testing.Short() {
		calls /= 20
	}
	t.Setenv("FAKE_NCCL_IDLE", "1")
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		runtime.LockOSThread() // which the queue's first calls set to device 0: another test may have left a thread on device 1
		defer runtime.UnlockOSThread()
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		r := begin(t, c, rt)
		x := r.mem(1)
		at, _ := x.Ptr()
		h, _ := r.s.Handle()
		lib := fakeOf(t, name)
		b, same, in := ccl.BufOfMemory(x), ccl.BufOfMemory(x), ccl.InPlace()
		var last ccl.Work
		issue := func(src *ccl.Buf) func(n int) time.Duration {
			return func(n int) time.Duration {
				start := time.Now()
				for range n {
					last = r.q.AllReduce(b, *src, ccl.Sum)
				}
				return time.Since(start)
			}
		}
		ways := []struct {
			name string
			run  func(n int) time.Duration
		}{
			{inC, func(n int) time.Duration { return lib.Loop(cside.Asked[name], c.Native(), h, at, 1, n) }},
			{alone, func(n int) time.Duration { return lib.Crossings(cside.Asked[name], c.Native(), h, at, 1, n) }},
			{inPlace, issue(&in)}, {twoBufs, issue(&same)},
		}
		for _, w := range ways[2:] {
			w.run(1000)
			require.Zero(t, testing.AllocsPerRun(1000, func() { w.run(1) }), w.name)
		}
		took := map[string][]float64{} // nanoseconds a call
		for range rounds {
			for _, w := range ways {
				d := w.run(calls)
				require.Positive(t, d, w.name)
				took[w.name] = append(took[w.name], float64(d.Nanoseconds())/float64(calls))
			}
		}
		require.NoError(t, last.Wait(t.Context()))
		for _, w := range ways {
			slices.Sort(took[w.name])
			least := took[w.name][0]
			t.Logf("%-26s least %6.1f ns, median %6.1f; beyond cgo at least %5.1f, beyond C %5.1f", w.name, least, took[w.name][rounds/2], least-took[alone][0], least-took[inC][0])
			limit := promised[w.name].Seconds() * 1e9
			switch more := least - took[alone][0]; {
			case limit == 0:
			case *promise && name == "nccl": // the fake's hipGetDevice, which RCCL's calls need, takes more than what is measured
				require.LessOrEqual(t, more, limit, w.name)
			case !testing.Short():
				require.Less(t, more, 10*limit, w.name)
			}
		}
	})
}
