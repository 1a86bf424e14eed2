//go:build xla && cgo && linux

package fit_test

import (
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
				got := train(t.Context(), t, c, x, &o, 1, 4)
				require.Equal(t, first[0], got[0], "the first step has changed nothing")
				require.InDeltaSlice(t, want, got, 5e-3)
				require.Equal(t, amp.State{Scale: 1 << 15, Good: 1, Skipped: 1}, x.Scaler().State())
			})
		})
	}
}
