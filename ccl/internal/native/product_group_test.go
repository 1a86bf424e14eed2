//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/gpu"
)

// TestProductGroupAllocations: a Group on a device allocates nothing, however many calls it has, of
// whatever kinds.
func TestProductGroupAllocations(t *testing.T) {
	t.Setenv("FAKE_NCCL_IDLE", "1")
	groups := 1000
	if testing.Short() { // under -race
		groups = 100
	}
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		r := begin(t, c, rt)
		b, in, one := ccl.Device(r.mem(1)), ccl.InPlace(), []int{1}
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
				require.Lessf(t, allocations(groups, func() { r.q.Group(f) }), groups/2, "%d groups of %d calls, %s", groups, n, what)
			}
		}
		require.NoError(t, r.q.Barrier().Wait(t.Context()))
	})
}

// allocations are all that this process makes in n runs of f, after one for what is kept:
// AllocsPerRun rounds down. The watch of the device, which another goroutine is, makes a few.
func allocations(n int, f func()) int {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.Mallocs - before.Mallocs)
}

// TestProductGroups: groups of a stream one after the other, one inside another's function on a
// Queue of its own, and the Queue of one that has returned.
func TestProductGroups(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
			x, y, z := r.mem(int32(r.me)), r.mem(10), r.mem(7, 7)
			var last ccl.Work
			for k := range 3 {
				last = r.q.Group(func(g ccl.Queue) error {
					for range k + 1 {
						g.AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Max)
					}
					g.AllReduce(ccl.Device(y), ccl.InPlace(), ccl.Sum)
					return nil
				})
			}
			assert.Equal(t, []int32{1}, r.ends(last, x))
			assert.Equal(t, []int32{80}, r.ends(last, y))
			var inner ccl.Work
			outer := r.q.Group(func(g ccl.Queue) error {
				g.AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum)
				inner = r.q.Group(func(g ccl.Queue) error {
					g.AllGatherV(ccl.Device(z), []int{1, 1}, ccl.Device(z).From(r.me, r.me+1))
					return nil
				})
				g.AllReduce(ccl.Device(y), ccl.InPlace(), ccl.Sum)
				return nil
			})
			assert.Equal(t, []int32{7, 7}, r.ends(inner, z))
			assert.Equal(t, []int32{2}, r.ends(outer, x))
			assert.Equal(t, []int32{160}, r.ends(outer, y))
			var stale ccl.Queue
			if err := r.q.Group(func(g ccl.Queue) error {
				stale = g
				g.AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum)
				return nil
			}).Wait(ctx); err != nil {
				return err
			}
			if err := r.q.Group(func(g ccl.Queue) error { g.AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum); return nil }).Wait(ctx); err != nil {
				return err
			}
			return stale.AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Sum).Wait(ctx)
		}) {
			assert.ErrorContains(t, err, "the Group has returned", "rank %d", rank)
		}
	})
}
