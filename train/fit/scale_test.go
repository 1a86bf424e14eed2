//go:build xla && cgo && linux

package fit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// In float16 the loss is scaled: steps whose gradients are infinite change nothing until the scale fits, on all ranks
// alike, and then the losses are those of float32 but for rounding.
func TestScaledLoss(t *testing.T) {
	o := options()
	want := losses(t, 1, func() *nn.Model { return llama(true) }, o, 4)
	half := func() *nn.Model {
		m := llama(true)
		m.Act = hlo.F16
		return m
	}
	o.Scale = &amp.Options{Init: 1 << 40, Backoff: 1. / (1 << 26), Interval: 3}
	for _, tc := range []struct {
		name  string
		ranks int
		short bool
		a     func(o *fit.Options)
	}{
		{"one rank", 1, false, func(*fit.Options) {}},
		{"two ranks, micro", 2, true, func(o *fit.Options) { o.Rows, o.Micro = 1, 2 }},
		{"ZeRO 3, micro", 2, true, func(o *fit.Options) { o.Rows, o.Stage, o.Micro = 1, 3, 2 }},
		{"ZeRO 2, offload", 2, false, func(o *fit.Options) { o.Rows, o.Stage, o.Offload = 2, 2, true }},
	} {
		if testing.Short() && !tc.short {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			o := o
			tc.a(&o)
			with(t, tc.ranks, half, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				first := train(t.Context(), t, c, x, &o, 1, 1)
				require.Equal(t, amp.State{Scale: 1 << 14, Skipped: 1}, x.Scaler().State())
				var got []float64
				for n := 1; n <= 4; n++ { // with the first step's data once more
					loss, err := x.Step(t.Context(), n+1, 1e-3, batches(&o, n, c.Rank(), c.Size(), o.Masked))
					require.NoError(t, err)
					list, err := x.Read(t.Context(), loss)
					require.NoError(t, err)
					got = append(got, list...)
				}
				require.Equal(t, first[0], got[0], "the first step has changed nothing, and is not counted")
				require.InDeltaSlice(t, want, got, 5e-3)
				require.Equal(t, amp.State{Scale: 1 << 15, Good: 1, Skipped: 1}, x.Scaler().State())
			})
		})
	}
}

// Gradients that are not finite, beside a loss that is, change nothing at stage 0 either, and are told by the loss. The
// slope of a norm at nothing is no number.
func TestOddGradients(t *testing.T) {
	model := func() *nn.Model {
		m := own(96, 64, 1)
		last := &m.Units[len(m.Units)-1]
		forward := last.Forward
		last.Forward = func(s *nn.Scope, x nn.V) nn.V {
			w := s.Param("slope", 0, 0, 1)
			return forward(s, x.Add(w.Mul(w).SumAll().Sqrt().As(x.Type())))
		}
		return m
	}
	for _, tc := range []struct {
		name  string
		ranks int
		short bool
		a     func(o *fit.Options)
	}{
		{"one rank", 1, true, func(*fit.Options) {}},
		{"one rank, no clip", 1, false, func(o *fit.Options) { o.Clip = 0 }},
		{"two ranks, micro", 2, true, func(o *fit.Options) { o.Rows, o.Micro = 1, 2 }},
	} {
		if testing.Short() && !tc.short {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			o := options()
			tc.a(&o)
			with(t, tc.ranks, model, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				before, err := x.Tensors(t.Context(), true)
				require.NoError(t, err)
				loss := train(t.Context(), t, c, x, &o, 1, 1)
				require.True(t, math.IsNaN(loss[0]), loss)
				after, err := x.Tensors(t.Context(), true)
				require.NoError(t, err)
				require.Equal(t, before, after)
			})
		})
	}
}
