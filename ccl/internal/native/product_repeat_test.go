//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductRepeat: an all-reduce in place like the one before it takes a shorter way. Whatever differs from the call before it is
// seen: the part of the memory, its length, type and owner, the operator, the stream, a group, and a call of another kind between.
func TestProductRepeat(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		well(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			me := int32(r.me + 1) // 1 and 2
			f, err := gpu.Alloc[float32](r.d, 4)
			require.NoError(r.t, err)
			defer f.Free()
			other, err := r.d.NewStream()
			require.NoError(r.t, err)
			defer other.Close()
			x, y := r.mem(0, 0, 0, 0), r.mem(me, 10*me, 100*me, 1000*me)
			b, in := ccl.BufOfMemory(x), ccl.InPlace()
			half := r.c.Scaled(0.5)
			for _, tc := range []struct {
				name string
				call func() ccl.Work
				want []int32 // of x
			}{
				{"the same", func() ccl.Work { return r.q.AllReduce(b, in, ccl.Sum) }, []int32{3, 30, 300, 3000}},
				{"a part", func() ccl.Work { return r.q.AllReduce(b.From(1, 3), in, ccl.Sum) }, []int32{me, 30, 300, 1000 * me}},
				{"parts of one length", func() ccl.Work {
					r.q.AllReduce(b.From(0, 1), in, ccl.Sum)
					return r.q.AllReduce(b.From(3, 4), in, ccl.Sum)
				}, []int32{3, 10 * me, 100 * me, 3000}},
				{"no elements", func() ccl.Work { return r.q.AllReduce(b.From(2, 2), in, ccl.Sum) }, []int32{me, 10 * me, 100 * me, 1000 * me}},
				{"another operator", func() ccl.Work { return r.q.AllReduce(b, in, ccl.Max) }, []int32{2, 20, 200, 2000}},
				{"another memory", func() ccl.Work { return r.q.AllReduce(ccl.BufOfMemory(y), in, ccl.Max) }, []int32{me, 10 * me, 100 * me, 1000 * me}},
				{"src of another memory", func() ccl.Work { return r.q.AllReduce(b, ccl.BufOfMemory(y), ccl.Prod) }, []int32{32, 3200, 320000, 32000000}},
				{"another type", func() ccl.Work { return r.q.AllReduce(ccl.BufOfMemory(f), in, ccl.Sum) }, []int32{me, 10 * me, 100 * me, 1000 * me}},
				{"a factor", func() ccl.Work {
					r.q.AllReduce(ccl.BufOfMemory(f), in, half)
					return r.q.AllReduce(ccl.BufOfMemory(f), in, half)
				}, []int32{me, 10 * me, 100 * me, 1000 * me}},
				{"another kind", func() ccl.Work {
					r.q.Broadcast(b, 1)
					return r.q.AllReduce(b, in, ccl.Sum)
				}, []int32{4, 40, 400, 4000}},
				{"counts between", func() ccl.Work {
					r.q.AllGatherV(ccl.BufOfMemory(y), []int{1, 3}, ccl.BufOfMemory(y).From(r.me, 2*r.me+1+r.me))
					return r.q.AllReduce(b, in, ccl.Sum)
				}, []int32{3, 30, 300, 3000}},
				{"in a group", func() ccl.Work {
					return r.q.Group(func(g ccl.Queue) error {
						g.AllReduce(b.From(0, 2), in, ccl.Sum)
						g.AllReduce(b.From(2, 4), in, ccl.Sum)
						return nil
					})
				}, []int32{3, 30, 300, 3000}},
				{"after one of a group", func() ccl.Work { return r.q.AllReduce(b.From(1, 3), in, ccl.Sum) }, []int32{me, 30, 300, 1000 * me}},
				{"another stream", func() ccl.Work { return r.c.On(other).AllReduce(b, in, ccl.Sum) }, []int32{3, 30, 300, 3000}},
				{"behind one on the host", func() ccl.Work {
					r.c.On(nil).AllReduce(ccl.BufOf([]int32{1}), in, ccl.Sum)
					return r.q.AllReduce(b, in, ccl.Sum)
				}, []int32{3, 30, 300, 3000}},
			} {
				if tc.name != "after one of a group" {
					r.ends(r.q.AllReduce(b, in, ccl.Sum), x)
				}
				require.NoError(r.t, errors.Join(x.Put([]int32{me, 10 * me, 100 * me, 1000 * me}), y.Put([]int32{4 * me, 40 * me, 400 * me, 4000 * me}),
					f.Put([]float32{float32(me), 0, 1, 2})))
				if tc.name == "another type" {
					r.ends(r.q.AllReduce(b.From(0, 4), in, ccl.Max), x)
					require.NoError(r.t, x.Put([]int32{me, 10 * me, 100 * me, 1000 * me}))
				}
				require.Equal(r.t, tc.want, r.ends(tc.call(), x), tc.name)
				if tc.name == "a factor" {
					v := make([]float32, 4)
					require.NoError(r.t, f.Get(v))
					assert.Equal(r.t, []float32{1.5, 0, 1, 2}, v)
				}
			}
		})
	})
}

// TestProductRepeatRefused: after a call like it, too, a call on freed memory, a closed stream or a closed Comm is refused.
func TestProductRepeatRefused(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for _, tc := range []struct {
			name string
			end  func(r *on, x *gpu.Mem[int32]) error
			code ccl.Code
			text string
		}{
			{"freed memory", func(r *on, x *gpu.Mem[int32]) error { return x.Free() }, ccl.ErrArgument, "dst: the device memory was freed"},
			{"closed stream", func(r *on, x *gpu.Mem[int32]) error { return r.s.Close() }, ccl.ErrArgument, "is closed"},
			{"closed Comm", func(r *on, x *gpu.Mem[int32]) error { return r.c.Close() }, ccl.ErrClosed, "AllReduce"},
			{"failed Comm", func(r *on, x *gpu.Mem[int32]) error { r.c.Abort(errors.New("enough")); <-r.c.Done(); return nil }, ccl.ErrAborted, "enough"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				leaves(t, name)
				for rank, err := range job(t, 1, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
					x, err := gpu.Alloc[int32](r.d, 4)
					require.NoError(r.t, err)
					defer x.Free()
					r.s, err = r.d.NewStream()
					require.NoError(r.t, err)
					defer r.s.Close()
					r.q = r.c.On(r.s)
					b := ccl.BufOfMemory(x)
					for range 3 {
						require.NoError(r.t, r.q.AllReduce(b, ccl.InPlace(), ccl.Sum).Wait(ctx))
					}
					require.NoError(r.t, tc.end(r, x))
					return r.q.AllReduce(b, ccl.InPlace(), ccl.Sum).Wait(ctx)
				}) {
					e := failure(t, rank, err, tc.code)
					assert.Contains(t, e.Error(), tc.text)
				}
			})
		}
	})
}
