//go:build !race && (nccl || rccl) && cgo && linux

package native_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductGroupAllocations: a Group on a device allocates nothing, however many calls it has, of
// whatever kinds.
func TestProductGroupAllocations(t *testing.T) {
	t.Setenv("FAKE_NCCL_IDLE", "1")
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		r := begin(t, c, rt)
		b, in, one := ccl.BufOfMemory(r.mem(1)), ccl.InPlace(), []int{1}
		for _, n := range []int{1, 8, 64, 256} {
			for what, call := range map[string]func(g ccl.Queue){
				"alike": func(g ccl.Queue) { g.AllReduce(b, in, ccl.Sum) },
				"mixed": func(g ccl.Queue) {
					g.AllReduce(b, in, ccl.Sum)
					g.Broadcast(b, 0)
					g.AllGatherV(b, one, in)
				},
			} {
				f := func(g ccl.Queue) error {
					for range n {
						call(g)
					}
					return nil
				}
				require.Zerof(t, allocations(func() { r.q.Group(f) }), "a group of %d calls, %s", n, what)
			}
		}
		require.NoError(t, r.q.Barrier().Wait(t.Context()))
	})
}

// allocations are the fewest that this process makes in a stretch of ten runs of f, of twenty
// stretches: AllocsPerRun rounds down, and the watch of the device makes some now and then.
func allocations(f func()) (least uint64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f() // makes what is kept
	least = math.MaxUint64
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 10 {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}
