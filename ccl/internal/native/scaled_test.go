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

// TestProductScaled sums multiplied elements on the device, alone and in a group, and on host memory through the library.
func TestProductScaled(t *testing.T) {
	wellOnEach(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) {
		half, quarter := r.c.Scaled(0.5), r.c.Scaled(0.25)
		x, err := gpu.Alloc[float32](r.d, 4)
		require.NoError(r.t, err)
		defer x.Free()
		y, err := gpu.Alloc[ccl.BFloat16](r.d, 2)
		require.NoError(r.t, err)
		defer y.Free()
		me := float32(r.me + 1)
		require.NoError(r.t, x.Put([]float32{me, 2 * me, 4, 8}))
		require.NoError(r.t, y.Put([]ccl.BFloat16{ccl.ToBFloat16(me), ccl.ToBFloat16(16)}))
		a, b := ccl.BufOfMemory(x).From(0, 2), ccl.BufOfMemory(x).From(2, 4)
		first := r.q.AllReduce(a, ccl.InPlace(), half)
		both := r.q.Group(func(g ccl.Queue) error {
			g.AllReduce(b, ccl.InPlace(), quarter)
			g.AllReduce(ccl.BufOfMemory(y), ccl.InPlace(), half)
			return nil
		})
		require.NoError(t, errors.Join(first.Wait(ctx), both.Wait(ctx)))
		got, gotY := make([]float32, 4), make([]ccl.BFloat16, 2)
		require.NoError(r.t, x.Get(got))
		require.NoError(r.t, y.Get(gotY))
		assert.Equal(r.t, []float32{1.5, 3, 2, 4}, got)
		assert.Equal(r.t, []ccl.BFloat16{ccl.ToBFloat16(1.5), ccl.ToBFloat16(16)}, gotY)
		i, err := gpu.Alloc[int32](r.d, 1)
		require.NoError(r.t, err)
		defer i.Free()
		here := []float64{float64(r.me + 1)}
		require.NoError(r.t, ccl.AllReduce(ctx, r.c, here, here, quarter))
		require.Equal(r.t, []float64{0.75}, here, "on the host")
	})
}

// TestProductScaledDiffers: ranks whose factors differ disagree about the call; integers are refused.
func TestProductScaledDiffers(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
			x, err := gpu.Alloc[float32](r.d, 1)
			require.NoError(r.t, err)
			defer x.Free()
			defer r.c.Close()
			require.NoError(r.t, x.Put([]float32{1}))
			return r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), r.c.Scaled(float64(r.me+1))).Wait(ctx)
		}) {
			failure(t, rank, err, ccl.ErrMismatch)
		}
		for rank, err := range job(t, 1, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
			defer r.c.Close()
			return r.q.AllReduce(ccl.BufOfMemory(r.mem(1)), ccl.InPlace(), r.c.Scaled(2)).Wait(ctx)
		}) {
			assert.ErrorContains(t, failure(t, rank, err, ccl.ErrArgument), "not int32")
		}
	})
}
