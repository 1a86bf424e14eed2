//go:build xla && cgo && linux

package gomlx_test

import (
	"testing"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/interop/gomlx"
)

// newXLARank is newRank on XLA's plugin for CPUs.
func newXLARank(t testing.TB, c *ccl.Comm, path string, inner optimizers.Interface, model train.ModelFn, how *gomlx.XLA) *rank {
	b, err := xla.NewWithOptions(path, pjrt.NamedValuesMap{})
	require.NoError(t, err)
	r := newRankOn(t, c, b, inner, model, 0)
	if how != nil {
		require.NoError(t, r.opt.OnXLA(*how))
	}
	return r
}

// Gradients that are averaged where XLA has them, and in memory that XLA views, give the bits of those that go through memory of the
// host, with both optimizers.
func TestOnXLA(t *testing.T) {
	path := xlatest.Path(t)
	t.Setenv("GOMLX_NO_AUTO_INSTALL", "1")
	for name, inner := range kinds {
		t.Run(name, func(t *testing.T) {
			learned := func(n int, how *gomlx.XLA) (curve []float64, h uint64) {
				return learn[float32](t, n, func(t testing.TB, c *ccl.Comm) *rank { return newXLARank(t, c, path, inner(), hidden(8), how) })
			}
			one, _ := learned(1, nil)
			curve, want := learned(2, nil)
			require.InDeltaSlice(t, one, curve, 1e-6)
			for _, view := range []bool{false, true} {
				got, h := learned(2, &gomlx.XLA{View: view})
				require.Equal(t, curve, got, "view: %v", view)
				require.Equal(t, want, h, "view: %v", view)
			}
		})
	}
}

// Another backend, another type, and a change in the middle are refused on all ranks.
func TestOnXLARefused(t *testing.T) {
	path := xlatest.Path(t)
	t.Setenv("GOMLX_NO_AUTO_INSTALL", "1")
	for _, view := range []bool{false, true} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) { // rank 1 alone has gomlx's own backend
			var r *rank
			if c.Rank() == 1 {
				r = newRank(t, c, sgd(), hidden(4))
				require.NoError(t, r.opt.OnXLA(gomlx.XLA{View: view}))
			} else {
				r = newXLARank(t, c, path, sgd(), hidden(4), &gomlx.XLA{View: view})
			}
			_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 3)
			require.ErrorContains(t, err, "gomlx: OnXLA: /goccl_gradients/a/dense/biases: it is ")
		})
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r := newXLARank(t, c, path, sgd(), hidden(4), &gomlx.XLA{View: view})
			_, err := r.loop.RunSteps(&batches[float64]{rank: c.Rank(), n: 2}, 3)
			require.ErrorContains(t, err, "gradients in XLA's memory a") // one may hear it from the other, cut to what the word of a failure holds
		})
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		r := newXLARank(t, c, path, sgd(), hidden(4), nil)
		_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 1)
		require.NoError(t, err)
		require.ErrorContains(t, r.opt.OnXLA(gomlx.XLA{}), "gomlx: OnXLA after the first training step")
	})
}
