package whole_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

// run is a Model with an Optimizer.
type run[P zero.Float] struct {
	m     *zero.Model[P, float32]
	o     *whole.Optimizer[float32]
	step  int
	quiet bool // no rank of this Comm has a gradient
}

func newRun[P zero.Float](t testing.TB, c *ccl.Comm, name string, o zero.Options) *run[P] {
	r := &run[P]{}
	o.Sum = true
	var err error
	r.m, err = zero.New[P, float32](t.Context(), c, lengths(), &o)
	require.NoError(t, err)
	for i := range shapes {
		full := [][]float32{}
		for j := range shapes[i] {
			full = append(full, initial(i, j))
		}
		require.NoError(t, r.m.Load(t.Context(), i, full, 0))
	}
	r.o, err = whole.New(t.Context(), c, r.m, shapes, func(unit, param int) whole.Rule { return courses[name](max(r.step, 1), unit, param) })
	require.NoError(t, err)
	return r
}

// take makes steps from..to. In each step one rank has all of the gradient.
func (r *run[P]) take(t testing.TB, c *ccl.Comm, from, to int) {
	for r.step = from; r.step <= to; r.step++ {
		r.backward(t, c)
		require.NoError(t, r.o.Step(t.Context(), r.step))
	}
	r.step = to
}

func (r *run[P]) backward(t testing.TB, c *ccl.Comm) {
	for i := len(shapes) - 1; i >= 0; i-- {
		if r.m.Frozen(i) {
			continue
		}
		g, err := r.m.Grads(t.Context(), i)
		require.NoError(t, err)
		for j := range g {
			if c.Rank() == r.step%c.Size() && !r.quiet {
				for k, x := range gradient(r.step, i, j) {
					g[j][k] = narrow[P](x)
				}
			}
		}
		require.NoError(t, r.m.Reduce(i))
	}
}

func narrow[P zero.Float](x float32) (y P) {
	switch p := any(&y).(type) {
	case *float32:
		*p = x
	case *ccl.BFloat16:
		*p = ccl.ToBFloat16(x)
	}
	return y
}

// masters are all of them, as whole tensors. They come by a checkpoint, since a Disk may have them.
func (r *run[P]) masters(t testing.TB, c *ccl.Comm, dir string) (all [][][]float32) {
	ts, err := r.m.Tensors(nil)
	require.NoError(t, err)
	require.NoError(t, ckpt.Save(t.Context(), c, dir, nil, ts))
	var want []ckpt.Tensor
	for i, list := range lengths() {
		all = append(all, nil)
		for j, n := range list {
			x := make([]float32, n)
			all[i] = append(all[i], x)
			if n > 0 {
				want = append(want, ckpt.Tensor{Name: fmt.Sprintf("%d.%d", i, j), Shape: []int{n}, Data: x})
			}
		}
	}
	require.NoError(t, ckpt.Load(t.Context(), c, dir, nil, want))
	return all
}

// near requires that each element is as wanted, within such a part of the largest of its tensor.
func near(t testing.TB, within float64, want, got [][][]float32, what string) {
	for i := range want {
		for j := range want[i] {
			most := float32(0)
			for _, x := range want[i][j] {
				most = max(most, x, -x)
			}
			for k := range want[i][j] {
				require.InDelta(t, want[i][j][k], got[i][j][k], within*float64(most), "%s: %s, element %d", what, shapes[i][j].Name, k)
			}
		}
	}
}
