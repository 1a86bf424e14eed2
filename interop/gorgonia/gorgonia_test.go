package gorgonia_test

import (
	"context"
	"errors"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/interop/gorgonia"
	"github.com/goccl/goccl/train/ddp"
)

const (
	rows  = 64
	steps = 30
)

// building is held by the rank that builds a graph: Grad writes into nodes of constants that all graphs of a process share, and
// ranks are goroutines here.
var building sync.Mutex

// model is y = tanh(x w0) w1, to learn a product.
type model[T float32 | float64] struct {
	x, y, loss *G.Node
	params     G.Nodes
	machine    G.VM
	solver     G.Solver
	rank, n    int
}

func newModel[T float32 | float64](t testing.TB, c *ccl.Comm, hidden int, solver G.Solver) *model[T] {
	building.Lock()
	defer building.Unlock()
	g := G.NewGraph()
	var zero T
	dt := tensor.Float32
	if _, ok := any(zero).(float64); ok {
		dt = tensor.Float64
	}
	k := rows / c.Size()
	m := &model[T]{rank: c.Rank(), n: c.Size(), solver: solver}
	m.x = G.NewMatrix(g, dt, G.WithShape(k, 2), G.WithName("x"))
	m.y = G.NewMatrix(g, dt, G.WithShape(k, 1), G.WithName("y"))
	r := rand.New(rand.NewSource(int64(c.Rank()))) // rank 0's count
	weights := func(name string, a, b int) *G.Node {
		d := make([]T, a*b)
		for i := range d {
			d[i] = T(r.Float64() - .5)
		}
		return G.NewMatrix(g, dt, G.WithShape(a, b), G.WithName(name), G.WithValue(tensor.New(tensor.WithShape(a, b), tensor.WithBacking(d))))
	}
	m.params = G.Nodes{weights("w0", 2, hidden), weights("w1", hidden, 1)}
	h := G.Must(G.Tanh(G.Must(G.Mul(m.x, m.params[0]))))
	m.loss = G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(h, m.params[1])), m.y))))))
	_, err := G.Grad(m.loss, m.params...)
	require.NoError(t, err)
	m.machine = G.NewTapeMachine(g, G.BindDualValues(m.params...))
	t.Cleanup(func() { m.machine.Close() })
	return m
}

// gradients computes those of this rank's part of a batch, and returns its loss.
func (m *model[T]) gradients(t testing.TB, step int) T {
	rnd := rand.New(rand.NewSource(int64(step)))
	x, y := make([]T, rows*2), make([]T, rows)
	for i := range rows {
		x[2*i], x[2*i+1] = T(rnd.Float64()*2-1), T(rnd.Float64()*2-1)
		y[i] = x[2*i] * x[2*i+1]
	}
	k := rows / m.n
	at := k * m.rank
	require.NoError(t, G.Let(m.x, tensor.New(tensor.WithShape(k, 2), tensor.WithBacking(x[2*at:2*(at+k)]))))
	require.NoError(t, G.Let(m.y, tensor.New(tensor.WithShape(k, 1), tensor.WithBacking(y[at:at+k]))))
	require.NoError(t, m.machine.RunAll())
	return m.loss.Value().Data().(T)
}

// learn trains on n ranks, and returns the mean over the ranks of each step's loss.
func learn[T float32 | float64](t *testing.T, n int, solver func() G.Solver) []float64 {
	t.Helper()
	var mu sync.Mutex
	curve := make([]float64, steps)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m := newModel[T](t, c, 32, solver())
		d := gorgonia.New(c, m.params)
		require.NoError(t, d.Broadcast(ctx, 0))
		for s := range steps {
			loss := m.gradients(t, s)
			mu.Lock()
			curve[s] += float64(loss) / float64(n)
			mu.Unlock()
			require.NoError(t, d.Average(ctx))
			require.NoError(t, m.solver.Step(G.NodesToValueGrads(m.params)))
			m.machine.Reset()
			require.NoError(t, ddp.Same(ctx, c, d.Hash()))
		}
		require.NoError(t, d.Close())
	})
	return curve
}

// TestLearns trains on 1, 2 and 4 ranks, each of which begins with other weights: rank 0's and the global batch decide.
func TestLearns(t *testing.T) {
	sgd := func() G.Solver { return G.NewVanillaSolver(G.WithLearnRate(.1)) }
	adam := func() G.Solver { return G.NewAdamSolver(G.WithLearnRate(.01)) }
	for name, solver := range map[string]func() G.Solver{"sgd": sgd, "adam": adam} {
		t.Run(name, func(t *testing.T) {
			one := learn[float32](t, 1, solver)
			assert.Less(t, one[steps-1], .95*one[0])
			for _, n := range []int{2, 4} {
				assert.InDeltaSlice(t, one, learn[float32](t, n, solver), 1e-6, "%d ranks", n)
			}
		})
	}
	t.Run("float64", func(t *testing.T) {
		assert.InDeltaSlice(t, learn[float64](t, 1, adam), learn[float64](t, 2, adam), 1e-12)
	})
}

func TestRefused(t *testing.T) {
	sgd := G.NewVanillaSolver()
	t.Run("models", func(t *testing.T) {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			m := newModel[float32](t, c, 32-c.Rank()/2, sgd)
			d := gorgonia.New(c, m.params)
			for _, err := range []error{d.Broadcast(t.Context(), 0), func() error { m.gradients(t, 0); return d.Average(t.Context()) }()} {
				require.ErrorContains(t, err, "rank 2 has gradient 0: 62 x float")
			}
		})
	})
	t.Run("before the machine has run", func(t *testing.T) {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel[float32](t, c, 4, sgd)
			if c.Rank() == 1 {
				m.gradients(t, 0)
			}
			err := gorgonia.New(c, m.params).Average(t.Context())
			if c.Rank() == 0 {
				require.ErrorContains(t, err, `the gradient of parameter "w0"`)
			}
			require.ErrorContains(t, err, "rank 0")
		})
	})
	t.Run("value", func(t *testing.T) { // of a parameter that has none yet
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			d := gorgonia.New(c, G.Nodes{G.NewMatrix(G.NewGraph(), tensor.Float32, G.WithShape(2, 2), G.WithName("late"))})
			require.ErrorContains(t, d.Broadcast(t.Context(), 0), `parameter "late": it is a <nil>, not a tensor`)
			require.Equal(t, d.Hash(), d.Hash())
		})
	})
	t.Run("type", func(t *testing.T) {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			n := G.NewMatrix(G.NewGraph(), tensor.Int, G.WithShape(2, 2), G.WithName("count"), G.WithValue(tensor.New(tensor.WithBacking([]int{1, 2, 3, 4}), tensor.WithShape(2, 2))))
			err := gorgonia.New(c, G.Nodes{n}).Broadcast(t.Context(), 0)
			require.ErrorContains(t, err, `parameter "count": it is of int: only float32 and float64`)
		})
	})
}

// TestLost ends Average on all ranks with the name of the one that leaves, or is killed.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name, cause string
		leaves      bool
		opts        []ccltest.Option
	}{
		{"leaves", "out of memory", true, nil},
		{"killed", "rank 1 lost: its process ended", false, []ccltest.Option{ccltest.Kill(1, 8)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := newModel[float32](t, c, 4, G.NewVanillaSolver())
				d := gorgonia.New(c, m.params)
				began := time.Now()
				var err error
				for s := 0; err == nil; s++ {
					m.gradients(t, s)
					if tt.leaves && c.Rank() == 1 && s == 3 {
						c.Abort(errors.New("out of memory"))
						return
					}
					err = d.Average(context.Background())
					m.machine.Reset()
				}
				require.Less(t, time.Since(began), time.Minute)
				if c.Rank() != 1 {
					require.ErrorContains(t, err, "rank 1")
					require.ErrorContains(t, err, tt.cause)
				}
			}, tt.opts...)
		})
	}
}

// TestScalars averages the gradients of parameters of one number, whether gorgonia holds them as
// scalars or as tensors of no dimensions, in every step.
func TestScalars(t *testing.T) {
	for name, value := range map[string]func(v float32) G.Value{
		"scalar": func(v float32) G.Value { return G.NewF32(v) },
		"tensor": func(v float32) G.Value { return tensor.New(tensor.FromScalar(v)) },
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				building.Lock()
				g := G.NewGraph()
				x := G.NewVector(g, tensor.Float32, G.WithShape(2), G.WithName("x"))
				a := G.NewScalar(g, tensor.Float32, G.WithName("a"), G.WithValue(value(2+float32(c.Rank()))))
				b := G.NewScalar(g, tensor.Float32, G.WithName("b"), G.WithValue(value(.5)))
				params := G.Nodes{a, b}
				loss := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Add(G.Must(G.Mul(x, a)), b))))))
				_, err := G.Grad(loss, params...)
				m := G.NewTapeMachine(g, G.BindDualValues(params...))
				building.Unlock()
				require.NoError(t, err)
				defer m.Close()
				d := gorgonia.New(c, params)
				require.NoError(t, d.Broadcast(ctx, 0))
				require.Equal(t, float32(2), a.Value().Data())
				solver := G.NewVanillaSolver(G.WithLearnRate(.01))
				for s := range 3 {
					require.NoError(t, G.Let(x, tensor.New(tensor.WithShape(2), tensor.WithBacking([]float32{1, float32(2 + 2*c.Rank() + s)}))))
					require.NoError(t, m.RunAll())
					want := make([]float32, 2)
					for i, p := range params {
						v, err := p.Grad()
						require.NoError(t, err)
						want[i] = v.Data().(float32)
					}
					alone := want[0]
					require.NoError(t, ccl.AllReduce(ctx, c, want, want, ccl.Avg))
					require.NotEqual(t, alone, want[0])
					require.NoError(t, d.Average(ctx))
					for i, p := range params {
						v, err := p.Grad()
						require.NoError(t, err)
						require.Equal(t, want[i], v.Data())
					}
					if name == "scalar" { // gorgonia's solvers take no tensor whose gradient is a scalar
						require.NoError(t, solver.Step(G.NodesToValueGrads(params)))
						require.NotEqual(t, float32(2), a.Value().Data())
					}
					m.Reset()
					require.NoError(t, ddp.Same(ctx, c, d.Hash()))
				}
				require.NoError(t, d.Close())
			})
		})
	}
}
