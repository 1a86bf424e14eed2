//go:build xla && cgo && linux

package gomlx_test

import (
	"context"
	"sync"
	"testing"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/interop/gomlx"
	"github.com/goccl/goccl/train/ddp"
)

// newXLARank is newRank on XLA's plugin for CPUs.
func newXLARank(t testing.TB, c *ccl.Comm, path string, inner optimizers.Interface, model train.ModelFn, how *gomlx.XLA) *rank {
	r := &rank{c: c, model: mlctx.New()}
	var err error
	r.backend, err = xla.NewWithOptions(path, pjrt.NamedValuesMap{})
	require.NoError(t, err)
	r.model.SetRNGStateFromSeed(int64(c.Rank()))
	r.opt, err = gomlx.New(c, r.backend, r.model, inner)
	require.NoError(t, err)
	if how != nil {
		require.NoError(t, r.opt.OnXLA(*how))
	}
	r.loop = train.NewLoop(train.NewTrainer(r.backend, r.model, model, losses.MeanSquaredError, r.opt, nil, nil))
	r.opt.Attach(context.Background(), r.loop)
	return r
}

// Gradients that are averaged where XLA has them, and in memory that XLA views, give the bits of those that go through memory of the
// host, with both optimizers.
func TestOnXLA(t *testing.T) {
	path := xlatest.Path(t)
	t.Setenv("GOMLX_NO_AUTO_INSTALL", "1")
	kinds := map[string]func() optimizers.Interface{
		"sgd":  func() optimizers.Interface { return optimizers.StochasticGradientDescent().WithLearningRate(.1).Done() },
		"adam": func() optimizers.Interface { return optimizers.Adam().LearningRate(.01).Done() },
	}
	for name, inner := range kinds {
		t.Run(name, func(t *testing.T) {
			learned := func(n int, how *gomlx.XLA) (curve []float64, h uint64) {
				const steps = 10
				var mu sync.Mutex
				curve = make([]float64, steps)
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					r := newXLARank(t, c, path, inner(), hidden(8), how)
					r.loop.OnStep("curve", 0, func(l *train.Loop, m []*tensors.Tensor) error {
						mu.Lock()
						defer mu.Unlock()
						curve[l.LoopStep] += shapes.ConvertTo[float64](m[0].Value()) / float64(n)
						return nil
					})
					_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: n}, steps)
					require.NoError(t, err)
					mine := hash(t, r.model)
					require.NoError(t, ddp.Same(context.Background(), c, mine))
					if c.Rank() == 0 {
						h = mine
					}
					require.NoError(t, r.opt.Close())
				})
				return curve, h
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
	sgd := func() optimizers.Interface { return optimizers.StochasticGradientDescent().Done() }
	for _, view := range []bool{false, true} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) { // rank 1 alone has gomlx's own backend
			var r *rank
			if c.Rank() == 1 {
				var err error
				r, err = newRank(c, sgd(), hidden(4))
				require.NoError(t, err)
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
