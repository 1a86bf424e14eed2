package gomlx_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/context/checkpoints"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/interop/gomlx"
	"github.com/goccl/goccl/train/ddp"
)

// backend is gomlx's own. Its operations run one by one, since it has data races where they run in parallel.
const backend = "go:ops_sequential"

const (
	rows  = 64
	steps = 30
)

// rank is one rank's model, made with its own random numbers.
type rank struct {
	c       *ccl.Comm
	backend backends.Backend
	model   *mlctx.Context
	opt     *gomlx.Optimizer
	loop    *train.Loop
}

// hidden builds y = w1 tanh(w0 x + b0) + b1 with so many hidden units.
func hidden(n int) train.ModelFn {
	return func(ctx *mlctx.Context, _ any, in []*graph.Node) []*graph.Node {
		h := graph.Tanh(layers.Dense(ctx.In("a"), in[0], true, n))
		return []*graph.Node{layers.Dense(ctx.In("b"), h, true, 1)}
	}
}

func sgd() optimizers.Interface {
	return optimizers.StochasticGradientDescent().WithLearningRate(.1).Done()
}

func adam() optimizers.Interface { return optimizers.Adam().LearningRate(.01).Done() }

var kinds = map[string]func() optimizers.Interface{"sgd": sgd, "adam": adam}

func newRank(t testing.TB, c *ccl.Comm, inner optimizers.Interface, model train.ModelFn) *rank {
	return newRankOf(t, c, inner, model, 0)
}

// newRankOf is newRank with gradients of so many steps accumulated.
func newRankOf(t testing.TB, c *ccl.Comm, inner optimizers.Interface, model train.ModelFn, accumulate int) *rank {
	b, err := backends.NewWithConfig(backend)
	require.NoError(t, err)
	return newRankOn(t, c, b, inner, model, accumulate)
}

func newRankOn(t testing.TB, c *ccl.Comm, b backends.Backend, inner optimizers.Interface, model train.ModelFn, accumulate int) *rank {
	r := &rank{c: c, backend: b, model: mlctx.New()}
	r.model.SetRNGStateFromSeed(int64(c.Rank()))
	var err error
	r.opt, err = gomlx.New(c, r.backend, r.model, inner)
	require.NoError(t, err)
	if accumulate > 0 {
		model = r.opt.Model(model)
	}
	trainer := train.NewTrainer(r.backend, r.model, model, losses.MeanSquaredError, r.opt, nil, nil)
	if accumulate > 0 {
		require.NoError(t, trainer.AccumulateGradients(accumulate))
	}
	r.loop = train.NewLoop(trainer)
	r.opt.Attach(context.Background(), r.loop)
	return r
}

// batches is the part of one rank of a product to be learned.
type batches[T float32 | float64] struct {
	rank, n, step int
}

func (b *batches[T]) Name() string { return "product" }
func (b *batches[T]) Reset()       { b.step = 0 }

func (b *batches[T]) Yield() (any, []*tensors.Tensor, []*tensors.Tensor, error) {
	rnd := rand.New(rand.NewSource(int64(b.step)))
	b.step++
	x, y := make([]T, rows*2), make([]T, rows)
	for i := range rows {
		x[2*i], x[2*i+1] = T(rnd.Float32()*2-1), T(rnd.Float32()*2-1)
		y[i] = x[2*i] * x[2*i+1]
	}
	k := rows / b.n
	at := k * b.rank
	return nil, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x[2*at:2*(at+k)], k, 2)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(y[at:at+k], k, 1)}, nil
}

// hash hashes the weights and the moments, by name.
func hash(t testing.TB, m *mlctx.Context) uint64 {
	of := map[string]uint64{}
	for v := range m.IterVariables() {
		if root := strings.Split(v.Scope(), "/")[1]; root != "a" && root != "b" && root != "AdamOptimizer" {
			continue
		}
		v.MustValue().MustConstFlatData(func(data any) {
			switch s := data.(type) {
			case []float32:
				of[v.ScopeAndName()] = ddp.Hash(s)
			case []float64:
				of[v.ScopeAndName()] = ddp.Hash(s)
			case []int64:
				of[v.ScopeAndName()] = ddp.Hash(s)
			}
		})
	}
	var all []uint64
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[name])
	}
	require.GreaterOrEqual(t, len(all), 4)
	return ddp.Hash(all)
}

// learn trains on n ranks, which start makes, and returns the mean over the ranks of each step's loss, and a hash of rank 0's model, which all
// have.
func learn[T float32 | float64](t *testing.T, n int, start func(t testing.TB, c *ccl.Comm) *rank) (curve []float64, h uint64) {
	t.Helper()
	var mu sync.Mutex
	curve = make([]float64, steps)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		r := start(t, c)
		r.loop.OnStep("curve", 0, func(l *train.Loop, m []*tensors.Tensor) error {
			mu.Lock()
			defer mu.Unlock()
			curve[l.LoopStep] += shapes.ConvertTo[float64](m[0].Value()) / float64(n)
			return nil
		})
		_, err := r.loop.RunSteps(&batches[T]{rank: c.Rank(), n: n}, steps)
		require.NoError(t, err)
		require.Equal(t, int64(steps), optimizers.GetGlobalStep(r.model))
		mine := hash(t, r.model)
		require.NoError(t, ddp.Same(context.Background(), c, mine))
		if c.Rank() == 0 {
			h = mine
		}
		require.NoError(t, r.opt.Close())
	})
	return curve, h
}

// TestLearns trains on 1, 2 and 4 ranks, each of which has other random numbers: rank 0's first values and the global
// batch decide alone.
func TestLearns(t *testing.T) {
	with := func(inner func() optimizers.Interface) func(t testing.TB, c *ccl.Comm) *rank {
		return func(t testing.TB, c *ccl.Comm) *rank { return newRank(t, c, inner(), hidden(32)) }
	}
	for name, inner := range kinds {
		t.Run(name, func(t *testing.T) {
			one, _ := learn[float32](t, 1, with(inner))
			assert.Less(t, one[steps-1], .95*one[0])
			for _, n := range []int{2, 4} {
				many, _ := learn[float32](t, n, with(inner))
				assert.InDeltaSlice(t, one, many, 1e-6, "%d ranks", n)
			}
		})
	}
	t.Run("float64", func(t *testing.T) {
		one, _ := learn[float64](t, 1, with(adam))
		two, _ := learn[float64](t, 2, with(adam))
		assert.InDeltaSlice(t, one, two, 1e-12)
	})
	t.Run("again", func(t *testing.T) {
		_, a := learn[float32](t, 2, with(adam))
		_, b := learn[float32](t, 2, with(adam))
		assert.Equal(t, a, b)
	})
}

// TestCheckpoint lets rank 0 write gomlx's checkpoint, without the gradients, and goes on from it: all ranks load it, or
// rank 0 alone, whose weights and moments the others then get.
func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var saved uint64
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		r := newRank(t, c, adam(), hidden(8))
		_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 5)
		require.NoError(t, err)
		if c.Rank() == 0 {
			h, err := checkpoints.Build(r.model).Dir(dir).Done()
			require.NoError(t, err)
			h.ExcludeVarsFromSaving(r.opt.Gradients()...)
			require.NoError(t, h.Save())
			saved = hash(t, r.model)
		}
	})
	after := map[bool]uint64{}
	for _, all := range []bool{true, false} {
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			be, err := backends.NewWithConfig(backend)
			require.NoError(t, err)
			m := mlctx.New()
			m.SetRNGStateFromSeed(int64(c.Rank()))
			if all || c.Rank() == 0 {
				_, err := checkpoints.Load(m).Dir(dir).Immediate().Done()
				require.NoError(t, err)
				for v := range m.IterVariables() {
					require.NotContains(t, v.Scope(), gomlx.Scope)
				}
				require.Equal(t, int64(5), optimizers.GetGlobalStep(m))
				require.Equal(t, saved, hash(t, m))
			}
			opt, err := gomlx.New(c, be, m, adam())
			require.NoError(t, err)
			loop := train.NewLoop(train.NewTrainer(be, m.Checked(false), hidden(8), losses.MeanSquaredError, opt, nil, nil))
			opt.Attach(context.Background(), loop)
			_, err = loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 4, step: 5}, 3)
			require.NoError(t, err)
			require.Equal(t, int64(8), optimizers.GetGlobalStep(m))
			mine := hash(t, m)
			require.NoError(t, ddp.Same(context.Background(), c, mine))
			if c.Rank() == 0 {
				after[all] = mine
			}
		})
	}
	assert.Equal(t, after[true], after[false])
}

// plain is an optimizer that computes the gradients itself.
type plain struct{}

func (plain) UpdateGraph(*mlctx.Context, *graph.Graph, *graph.Node) {}
func (plain) Clear(*mlctx.Context) error                            { return nil }

func TestRefused(t *testing.T) {
	t.Run("optimizer", func(t *testing.T) {
		_, err := gomlx.New(nil, nil, nil, plain{})
		require.ErrorContains(t, err, "gomlx_test.plain does not take gradients")
		require.ErrorContains(t, err, "gomlx's SGD and Adam do")
	})
	t.Run("Step first", func(t *testing.T) {
		opt, err := gomlx.New(nil, nil, nil, sgd())
		require.NoError(t, err)
		require.ErrorContains(t, opt.Step(context.Background()), "Step before the first training step")
	})
	t.Run("models", func(t *testing.T) {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			width := 32
			if c.Rank() == 1 {
				width = 31
			}
			r := newRank(t, c, sgd(), hidden(width))
			_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 3}, 1)
			require.ErrorContains(t, err, "the gradients of the model")
			require.ErrorContains(t, err, "31 x float")
		})
	})
}

// TestLost ends the training of all ranks with the name of the one that leaves, or is killed.
func TestLost(t *testing.T) {
	gone := errors.New("out of memory")
	for _, tt := range []struct {
		name, cause string
		leaves      bool
		opts        []ccltest.Option
	}{
		{"leaves", "out of memory", true, nil},
		{"killed", "rank 1 lost: its process ended", false, []ccltest.Option{ccltest.Kill(1, 20)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				r := newRank(t, c, sgd(), hidden(4))
				r.loop.OnStep("leave", math.MinInt32/2, func(l *train.Loop, _ []*tensors.Tensor) error {
					if tt.leaves && c.Rank() == 1 && l.LoopStep == 3 {
						c.Abort(gone)
						return gone
					}
					return nil
				})
				began := time.Now()
				_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 3}, 1000)
				require.Error(t, err)
				require.Less(t, time.Since(began), time.Minute)
				if c.Rank() != 1 {
					require.ErrorContains(t, err, "rank 1")
					require.ErrorContains(t, err, tt.cause)
				}
			}, tt.opts...)
		})
	}
}
