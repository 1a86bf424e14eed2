//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

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
						g.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
					}
					sumOf(g, y)
					return nil
				})
			}
			assert.Equal(t, []int32{1}, r.ends(last, x))
			assert.Equal(t, []int32{80}, r.ends(last, y))
			var inner ccl.Work
			outer := r.q.Group(func(g ccl.Queue) error {
				sumOf(g, x)
				inner = r.q.Group(func(g ccl.Queue) error {
					g.AllGatherV(ccl.BufOfMemory(z), []int{1, 1}, ccl.BufOfMemory(z).From(r.me, r.me+1))
					return nil
				})
				sumOf(g, y)
				return nil
			})
			assert.Equal(t, []int32{7, 7}, r.ends(inner, z))
			assert.Equal(t, []int32{2}, r.ends(outer, x))
			assert.Equal(t, []int32{160}, r.ends(outer, y))
			var stale ccl.Queue
			if err := r.q.Group(func(g ccl.Queue) error {
				stale = g
				sumOf(g, x)
				return nil
			}).Wait(ctx); err != nil {
				return err
			}
			if err := r.q.Group(func(g ccl.Queue) error { sumOf(g, x); return nil }).Wait(ctx); err != nil {
				return err
			}
			return sumOf(stale, x).Wait(ctx)
		}) {
			assert.ErrorContains(t, err, "the Group has returned", "rank %d", rank)
		}
	})
}
