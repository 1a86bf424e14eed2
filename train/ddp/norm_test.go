package ddp_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// The norm is that of the averaged gradients, of all types together, and Clip brings it down; what is not finite leaves them
// as they were.
func TestNormAndClip(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		a, b := make([]float32, 3), make([]float64, 2)
		h, g := make([]ccl.BFloat16, 1), make([]ccl.Float16, 1)
		r := newReducer(t, c, []ccl.Buf{ccl.BufOf(a), ccl.BufOf(b), ccl.BufOf(h), ccl.BufOf(g)}, nil)
		defer r.Close()
		set := func(x float64) {
			clear(a)
			a[1], b[0] = float32(6*c.Rank()), 8*float64(c.Rank()) // averages of 3 and 4
			h[0], g[0] = ccl.ToBFloat16(float32(x)), ccl.ToFloat16(12)
			require.NoError(t, r.All(t.Context()))
		}
		set(0)
		norm, err := r.Norm()
		require.NoError(t, err)
		require.Equal(t, 13., norm)
		norm, err = r.Clip(13.1)
		require.NoError(t, err)
		require.Equal(t, 13., norm)
		require.Equal(t, []float32{0, 3, 0}, a)
		norm, err = r.Clip(6.5)
		require.NoError(t, err)
		require.Equal(t, 13., norm)
		by := 6.5 / (13 + 1e-6) // as clip_grad_norm_
		require.Equal(t, []float32{0, 3 * float32(by)}, a[:2])
		require.InDeltaSlice(t, []float64{4 * by, 0}, b, 1e-15)
		require.Equal(t, float32(6), g[0].Float32())
		for _, x := range []float64{math.NaN(), math.Inf(-1)} {
			set(x)
			_, err = r.Clip(1)
			require.ErrorIs(t, err, ddp.ErrNotFinite)
			require.ErrorContains(t, err, "gradient 2")
			require.Equal(t, []float64{4, 0}, b)
		}
		for _, x := range []float64{-1, math.NaN()} {
			_, err = r.Clip(x)
			require.ErrorContains(t, err, "cannot be clipped")
		}
		require.NoError(t, r.Ready(0))
		_, err = r.Norm()
		require.EqualError(t, err, "ddp: Norm: gradient 0 is Ready and may be under way; Wait first")
		require.NoError(t, r.Ready(1))
		require.NoError(t, r.Ready(2))
		require.NoError(t, r.Ready(3))
		require.NoError(t, r.Wait(t.Context()))
		set(0)
		require.Zero(t, ccltest.Allocs(t, c, 10, func() { r.Norm() }))
	})
}

// What one rank alone does out of order is an error of its call, and ends those of the others at once, with the reason.
func TestMisuseOfOne(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wrong func(r *ddp.Reducer) error
		text  string
	}{
		{"ready twice", func(r *ddp.Reducer) error { return r.Ready(0) }, "ddp: gradient 0 is Ready twice in one step"},
		{"no such gradient", func(r *ddp.Reducer) error { return r.Ready(2) }, "ddp: Ready of gradient 2; the gradients are 0 to 1"},
		{"closed within a step", func(r *ddp.Reducer) error {
			r.Close()
			return errors.New("ddp: Close within a step: gradient 0 is Ready")
		}, "ddp: Close within a step: gradient 0 is Ready"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, 0)
				r := newReducer(t, c, []ccl.Buf{ccl.BufOf(make([]float32, 9)), ccl.BufOf(make([]float32, 9))}, nil)
				defer r.Close()
				require.NoError(t, r.Ready(0))
				ccltest.Barrier(t, world)
				if c.Rank() == 1 {
					require.EqualError(t, tc.wrong(r), tc.text)
					return
				}
				select {
				case <-c.Done():
				case <-time.After(10 * time.Second):
					t.Error("the Comm has not failed")
				}
				require.NoError(t, r.Ready(1))
				require.ErrorContains(t, r.Wait(t.Context()), "aborted by rank 1: "+tc.text)
			})
		})
	}
}

// A Wait whose context ends may be made again; a Close in its place ends the step of the others, with the reason.
func TestWaitGivesUp(t *testing.T) {
	for _, again := range []bool{true, false} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c, g := ccltest.Split(t, world, 0, 0), []float32{float32(world.Rank())}
			r := newReducer(t, c, []ccl.Buf{ccl.BufOf(g)}, nil)
			defer r.Close()
			if c.Rank() == 0 {
				require.NoError(t, r.Ready(0))
				var none context.Context
				require.ErrorIs(t, r.Wait(none), ccl.ErrArgument)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				for range 2 {
					require.ErrorIs(t, r.Wait(ctx), context.DeadlineExceeded)
				}
			}
			ccltest.Barrier(t, world)
			if c.Rank() == 1 {
				require.NoError(t, r.Ready(0))
			}
			switch {
			case again:
				require.NoError(t, r.Wait(t.Context()))
				require.Equal(t, []float32{.5}, g)
			case c.Rank() == 0:
				require.NoError(t, r.Close())
				require.ErrorContains(t, c.Err(), "ddp: Close within a step: gradient 0 is Ready")
			default:
				require.ErrorContains(t, r.Wait(t.Context()), "aborted by rank 0: ddp: Close within a step: gradient 0 is Ready")
			}
		})
	}
}
