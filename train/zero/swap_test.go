package zero_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// A moving average that is sharded as the parameters are serves to evaluate with.
func ExampleModel_Swap() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		m, err := zero.New[float32, float32](ctx, c, [][]int{{40}}, &zero.Options{Stage: 3})
		if err != nil {
			return err
		}
		defer m.Close()
		average := [][]float32{make([]float32, len(m.Shard(0)))}
		for range 3 { // the gradient is -1 everywhere, so that parameters are 1, 2, 3
			g, err := m.Grads(ctx, 0)
			if err != nil {
				return err
			}
			for i := range g[0] {
				g[0][i] = -1
			}
			if err := m.Reduce(0); err != nil {
				return err
			}
			err = m.Step(ctx, func(p zero.Piece, w, g []float32) error {
				if err := optim.ApplySGD(optim.SGD{LR: 1}, w, g, nil); err != nil {
					return err
				}
				return optim.EMA(.5, 0, average[p.Unit][p.At:p.At+p.Hi-p.Lo], w)
			})
			if err != nil {
				return err
			}
		}
		for _, what := range []string{"average", "parameters"} {
			if err := m.Swap(ctx, average); err != nil {
				return err
			}
			w, err := m.Params(ctx, 0)
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				fmt.Println(what, w[0][0], w[0][39])
			}
			m.Release(0)
		}
		return nil
	})
	// Output:
	// average 2.125 2.125
	// parameters 3 3
}

// Groups of parameters and a moving average have the bits of one rank that has all of them whole, at all stages.
func TestGroupsAndAverage(t *testing.T) {
	units := [][]int{{50, 3}, {}, {7}, {200, 1}}
	groups, err := optim.NewGroups(units,
		optim.Group[optim.AdamW]{Name: "biases", Has: func(_, param int) bool { return param == 1 }, Hyper: optim.AdamW{LR: .01}},
		optim.Group[optim.AdamW]{Name: "first", Has: func(unit, _ int) bool { return unit == 0 }, Hyper: optim.AdamW{LR: .001, Decay: .1}},
		optim.Group[optim.AdamW]{Name: "others", Hyper: optim.AdamW{LR: .003, Decay: .01, Beta2: .95}})
	require.NoError(t, err)
	gradient := func(rank, step, unit, param, at int) float32 {
		return float32((rank*7+step*13+unit*5+param*3+at*11)%23)/10 - 1
	}
	const steps = 5
	for _, n := range []int{1, 2, 3} {
		var want, average [][][]float32
		for i, lens := range units {
			want, average = append(want, nil), append(average, nil)
			for j, k := range lens {
				w, a, mo, v := make([]float32, k), make([]float32, k), make([]float32, k), make([]float32, k)
				for step := 1; step <= steps; step++ {
					g := make([]float32, k)
					for e := range g {
						for r := range n {
							g[e] += gradient(r, step, i, j, e)
						}
						g[e] /= float32(n)
					}
					h := []optim.AdamW{{LR: .01}, {LR: .001, Decay: .1}, {LR: .003, Decay: .01, Beta2: .95}}[map[bool]int{true: 0, false: min(i, 1) + 1}[j == 1]]
					require.NoError(t, optim.Apply(h, step, w, g, mo, v))
					for e := range w {
						decay := min(.9, float64(1+step)/float64(10+step))
						kept, added := float32(decay)*a[e], float32(1-decay)*w[e]
						a[e] = kept + added
					}
				}
				want[i], average[i] = append(want[i], w), append(average[i], a)
			}
		}
		for stage := range 4 {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage})
				defer m.Close()
				mo, v, a := shards(m, len(units)), shards(m, len(units)), shards(m, len(units))
				for step := 1; step <= steps; step++ {
					backward(t, m, len(units), func(i int, g [][]float32) {
						for j := range g {
							for e := range g[j] {
								g[j][e] = gradient(c.Rank(), step, i, j, e)
							}
						}
					})
					require.NoError(t, m.Step(ctx, func(p zero.Piece, w, g []float32) error {
						at := func(x [][]float32) []float32 { return x[p.Unit][p.At : p.At+p.Hi-p.Lo] }
						if err := optim.Apply(groups.Of(p.Unit, p.Param), step, w, g, at(mo), at(v)); err != nil {
							return err
						}
						return optim.EMA(.9, step, at(a), w)
					}))
				}
				for _, of := range [][][][]float32{want, average, want} {
					for i := range units {
						w := paramsOf(t, m, i)
						for j := range w {
							require.Equal(t, of[i][j], w[j], "stage %d, %d ranks, parameter %d of unit %d", stage, n, j, i)
						}
						m.Release(i)
					}
					require.NoError(t, m.Swap(ctx, a))
				}
			})
		}
	}
}

// What one rank cannot swap no rank swaps.
func TestSwapErrors(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m := newModel[float32, float32](t, c, [][]int{{4}, {40}}, &zero.Options{Stage: 1, Frozen: func(unit int) bool { return unit == 0 }})
		defer m.Close()
		good := func() [][]float32 { return [][]float32{nil, make([]float32, 32)} }
		for _, tc := range []struct {
			want string
			of   func(x [][]float32) [][]float32
		}{
			{"zero: rank 1: Swap of 1 units with the 2 of the model", func(x [][]float32) [][]float32 { return x[:1] }},
			{"zero: rank 1: Swap of unit 1, whose shard has 8 elements, with 7", func(x [][]float32) [][]float32 { return [][]float32{nil, make([]float32, 7)} }},
			{"zero: rank 1: Swap of unit 0, which is frozen", func(x [][]float32) [][]float32 { return [][]float32{x[1], x[1]} }},
			{"zero: ranks differ: rank 0 has unit 1 to swap: true, rank 1 has unit 1 to swap: false", func(x [][]float32) [][]float32 { return [][]float32{nil, nil} }},
		} {
			x := good()
			if c.Rank() == 1 {
				x = tc.of(x)
			}
			require.EqualError(t, m.Swap(ctx, x), tc.want)
		}
		paramsOf(t, m, 1)
		require.ErrorContains(t, m.Swap(ctx, good()), "zero: Swap within a step: unit 1 is in use, or was reduced")
		m.Release(1)
		require.NoError(t, m.Swap(ctx, good()))
	})
}

// A slice that two units have, or a part of one, is refused: each would get what the other has. What is behind a shard counts not.
func TestSwapOverlaps(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := filled(t, c, 2, zero.Options{})
		defer m.Close()
		x := make([]float32, 80)
		for _, of := range [][][]float32{{x, x}, {x[:32], x[31:63]}} {
			require.ErrorContains(t, m.Swap(t.Context(), of), "Swap of units 0 and 1, whose slices overlap")
		}
		require.Equal(t, make([]float32, 80), x)
		require.NoError(t, m.Swap(t.Context(), [][]float32{x[:40], x[32:]}))
		for i := range 32 {
			require.Equal(t, []float32{float32(32*c.Rank() + i), float32(1000 + 32*c.Rank() + i)}, []float32{x[i], x[32+i]})
		}
	})
}
