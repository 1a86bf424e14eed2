package gomlx_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// parts yields the batches of one rank in so many parts, one after another.
type parts struct {
	batches[float32]
	of, at int
}

func (p *parts) Yield() (any, []*tensors.Tensor, []*tensors.Tensor, error) {
	b := batches[float32]{rank: p.rank*p.of + p.at%p.of, n: p.n * p.of, step: p.at / p.of}
	p.at++
	return b.Yield()
}

// Ranks that accumulate the gradients of two or four parts of their batches have the weights that one rank has of whole ones, by
// gomlx alone.
func TestAccumulates(t *testing.T) {
	const steps = 10
	weights := func(m *mlctx.Context) map[string][]float32 {
		found := map[string][]float32{}
		for v := range m.IterVariables() {
			if root := strings.Split(v.Scope(), "/")[1]; root == "a" || root == "b" {
				v.MustValue().MustConstFlatData(func(data any) { found[v.ScopeAndName()] = slices.Clone(data.([]float32)) })
			}
		}
		require.Len(t, found, 4)
		return found
	}
	var want map[string][]float32
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		r := newRank(t, c, adam(), hidden(8))
		trainer := train.NewTrainer(r.backend, r.model, hidden(8), losses.MeanSquaredError, adam(), nil, nil)
		_, err := train.NewLoop(trainer).RunSteps(&batches[float32]{n: 1}, steps)
		require.NoError(t, err)
		want = weights(r.model)
	})
	for _, tt := range []struct{ ranks, parts int }{{1, 2}, {2, 2}, {2, 4}, {4, 1}} {
		ccltest.Run(t, tt.ranks, func(t testing.TB, c *ccl.Comm) {
			r := newRankOf(t, c, adam(), hidden(8), tt.parts)
			_, err := r.loop.RunSteps(&parts{batches: batches[float32]{rank: c.Rank(), n: tt.ranks}, of: tt.parts}, steps*tt.parts)
			require.NoError(t, err)
			require.Equal(t, int64(steps), optimizers.GetGlobalStep(r.model))
			for name, got := range weights(r.model) {
				require.InDeltaSlice(t, want[name], got, 1e-5, name)
			}
			require.NoError(t, ddp.Same(context.Background(), c, hash(t, r.model)))
			require.NoError(t, r.opt.Close())
		})
	}
}

func TestAccumulatesNot(t *testing.T) {
	t.Run("without Model", func(t *testing.T) {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r := newRank(t, c, sgd(), hidden(4))
			require.NoError(t, r.loop.Trainer.AccumulateGradients(2))
			_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 2)
			require.ErrorContains(t, err, "give train.NewTrainer opt.Model(model)")
		})
	})
	t.Run("other numbers of steps", func(t *testing.T) {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r := newRankOf(t, c, sgd(), hidden(4), 2+c.Rank())
			_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 12)
			require.ErrorContains(t, err, "gomlx: AccumulateGradients: rank 1 has 3 steps, and rank 0 has 2")
		})
	})
}

// What goes wrong on one rank alone, while the others are in the exchange or before it, is told on all, and nobody waits.
func TestErrorOfOneRank(t *testing.T) {
	for name, tt := range map[string]struct {
		model func(rank int) train.ModelFn
		inner func(rank int) optimizers.Interface
		step  func(r *rank) error // in the place of the first step
		want  string
	}{
		"the model has updates of its own": {want: "AddPerStepUpdateGraphFn", model: func(rank int) train.ModelFn {
			return func(ctx *mlctx.Context, spec any, in []*graph.Node) []*graph.Node {
				if rank == 1 {
					train.AddPerStepUpdateGraphFn(ctx, in[0].Graph(), func(*mlctx.Context, *graph.Graph) {})
				}
				return hidden(4)(ctx, spec, in)
			}
		}},
		"nothing is trained": {want: "gomlx: 0 variables to train and 0 gradients", model: func(rank int) train.ModelFn {
			return func(ctx *mlctx.Context, spec any, in []*graph.Node) []*graph.Node {
				out := layers.Dense(ctx.In("a"), in[0], true, 1)
				for v := range ctx.IterVariables() {
					v.SetTrainable(rank != 1)
				}
				return []*graph.Node{out}
			}
		}},
		"another type": {want: "only Float32 and Float64", model: func(rank int) train.ModelFn {
			return func(ctx *mlctx.Context, spec any, in []*graph.Node) []*graph.Node {
				x := in[0]
				if rank == 1 {
					x = graph.ConvertDType(x, dtypes.BFloat16)
				}
				return []*graph.Node{graph.ConvertDType(layers.Dense(ctx.In("a"), x, true, 1), dtypes.Float32)}
			}
		}},
		"the optimizer's graph": {want: "no graph today", inner: func(rank int) optimizers.Interface {
			if rank == 1 {
				return broken{sgd().(both)}
			}
			return sgd()
		}},
		"Step too early": {want: "Step before the first training step", step: func(r *rank) error { return r.opt.Step(context.Background()) }},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				inner := sgd()
				if tt.inner != nil {
					inner = tt.inner(c.Rank())
				}
				model := hidden(4)
				if tt.model != nil {
					model = tt.model(c.Rank())
				}
				r := newRank(t, c, inner, model)
				var err error
				began := time.Now()
				if tt.step != nil && c.Rank() == 1 {
					err = tt.step(r)
				} else {
					_, err = r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 3}, 3)
				}
				require.ErrorContains(t, err, tt.want)
				require.Less(t, time.Since(began), time.Minute)
				if c.Rank() != 1 {
					require.ErrorContains(t, err, "rank 1")
				}
			})
		})
	}
}

// both is what New wants of an optimizer.
type both interface {
	optimizers.Interface
	train.OptimizeWithGradients
}

// broken is an optimizer whose graph cannot be built.
type broken struct{ both }

func (broken) UpdateGraphWithGradients(*mlctx.Context, []*graph.Node, dtypes.DType) {
	panic(errors.New("no graph today"))
}
