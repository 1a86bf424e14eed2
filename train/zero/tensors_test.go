package zero_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// real is a type of a program's own.
type real float32

var tensorUnits = [][]int{{5, 12}, {}, {7}, {1, 0, 30}}

// filledUnits is a model whose parameters and states count up, each from another number, or zeros.
func filledUnits[P, M zero.Float](t testing.TB, c *ccl.Comm, stage int, fill bool) (*zero.Model[P, M], []zero.State[M]) {
	m := newModel[P, M](t, c, tensorUnits, &zero.Options{Stage: stage})
	states := []zero.State[M]{{Prefix: "m.", Of: shards(m, len(tensorUnits))}, {Prefix: "v.", Of: shards(m, len(tensorUnits))}}
	for i := range tensorUnits {
		for _, p := range m.Pieces(i) {
			for e := p.Lo; fill && e < p.Hi; e++ {
				at := p.At + e - p.Lo
				m.Shard(i)[at] = number[M](100*i + 40*p.Param + e)
				states[0].Of[i][at], states[1].Of[i][at] = number[M](1+e), number[M](2+e)
			}
		}
	}
	return m, states
}

// number is n as a Float.
func number[M zero.Float](n int) M {
	var x M
	switch p := any(&x).(type) {
	case *float32:
		*p = float32(n)
	case *float64:
		*p = float64(n)
	case *real:
		*p = real(n)
	}
	return x
}

// place is where a parameter stands: one is a matrix.
func place(unit, param int) ckpt.Tensor {
	if unit == 0 && param == 1 {
		return ckpt.Tensor{Name: "w", Shape: []int{3, 4}}
	}
	return ckpt.Tensor{Name: fmt.Sprint("p", unit, param), Shape: []int{tensorUnits[unit][param]}}
}

// A model with its optimizer is saved in one call, and loaded in one by another number of ranks at another stage.
func TestTensors(t *testing.T) {
	testTensors[float32, float32](t)
	testTensors[ccl.BFloat16, float32](t)
	testTensors[float64, float64](t)
	testTensors[real, real](t)
}

func testTensors[P, M zero.Float](t *testing.T) {
	dir := t.TempDir()
	for step, from := range [][2]int{{3, 3}, {2, 0}, {1, 1}, {4, 2}} {
		ranks, stage := from[0], from[1]
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			m, states := filledUnits[P, M](t, c, stage, step == 0)
			ts, err := m.Tensors(place, states...)
			require.NoError(t, err)
			if step > 0 {
				require.NoError(t, ckpt.Load(t.Context(), c, ckpt.Step(dir, step-1), nil, ts))
				require.NoError(t, m.Loaded(t.Context()))
				want, wanted := filledUnits[P, M](t, c, stage, true)
				for i := range tensorUnits {
					require.Equal(t, want.Shard(i), m.Shard(i))
					require.Equal(t, wanted[0].Of[i], states[0].Of[i])
					require.Equal(t, wanted[1].Of[i], states[1].Of[i])
				}
				require.NoError(t, want.Close())
			}
			require.NoError(t, ckpt.Save(t.Context(), c, ckpt.Step(dir, step), nil, ts))
			require.NoError(t, m.Close())
		})
	}
	held, err := ckpt.Inspect(ckpt.Step(dir, 3))
	require.NoError(t, err)
	var names []string
	for _, x := range held.Tensors {
		names = append(names, x.Name)
		if x.Name == "w" {
			require.Equal(t, []int{3, 4}, x.Shape)
		}
	}
	require.Subset(t, names, []string{"w", "m.w", "v.w", "p0 0", "p2 0", "m.p3 2"})
}

func TestTensorsRefused(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m, states := filledUnits[float32, float32](t, c, 1, false)
		_, err := m.Tensors(nil, zero.State[float32]{Prefix: "m.", Of: states[0].Of[1:]})
		require.EqualError(t, err, `zero: state "m." has 3 units, not 4`)
		states[0].Of[0] = nil
		_, err = m.Tensors(nil, states...)
		require.ErrorContains(t, err, `zero: state "m." has 0 elements of unit 0, and the shard has`)
		_, err = m.Tensors(func(int, int) ckpt.Tensor { return ckpt.Tensor{Name: "x", Shape: []int{3}} })
		require.ErrorContains(t, err, `of unit 0 has `)
		_, err = m.Tensors(nil)
		require.NoError(t, err)
		require.NoError(t, m.Close())
		_, err = m.Tensors(nil)
		require.Error(t, err)
	})
}

// Two ranks train and save model and optimizer in one call; one rank goes on.
func ExampleModel_Tensors() {
	dir, err := os.MkdirTemp("", "zero")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	train := func(ctx context.Context, c *ccl.Comm, first int) error {
		m, err := zero.New[float32, float32](ctx, c, [][]int{{3}}, &zero.Options{Stage: 3})
		if err != nil {
			return err
		}
		defer m.Close()
		mom, vel := make([]float32, len(m.Shard(0))), make([]float32, len(m.Shard(0)))
		weight := func(unit, param int) ckpt.Tensor { return ckpt.Tensor{Name: "weight", Shape: []int{3}} }
		ts, err := m.Tensors(weight, zero.State[float32]{Prefix: "adamw.m.", Of: [][]float32{mom}}, zero.State[float32]{Prefix: "adamw.v.", Of: [][]float32{vel}})
		if err != nil {
			return err
		}
		if first > 1 {
			if err := ckpt.Load(ctx, c, ckpt.Step(dir, first-1), nil, ts); err != nil {
				return err
			}
			if err := m.Loaded(ctx); err != nil {
				return err
			}
		}
		w, err := m.Params(ctx, 0)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("step %d begins with %.3f\n", first, w[0])
		}
		m.Release(0)
		g, err := m.Grads(ctx, 0)
		if err != nil {
			return err
		}
		for i := range g[0] {
			g[0][i] = 1
		}
		if err := m.Reduce(0); err != nil {
			return err
		}
		h := optim.AdamW{LR: .1, Beta1: .9, Beta2: .999, Eps: 1e-8}
		if err := m.Step(ctx, func(p zero.Piece, w, g []float32) error {
			return optim.Apply(h, first, w, g, mom[p.At:p.At+len(w)], vel[p.At:p.At+len(w)])
		}); err != nil {
			return err
		}
		return ckpt.Save(ctx, c, ckpt.Step(dir, first), nil, ts)
	}
	for i, ranks := range []int{2, 1} {
		ccltest.Example(ranks, func(c *ccl.Comm) error { return train(context.Background(), c, i+1) })
	}
	// Output:
	// step 1 begins with [0.000 0.000 0.000]
	// step 2 begins with [-0.100 -0.100 -0.100]
}
