package grads_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/grads"
	"github.com/goccl/goccl/train/zero"
)

// The norms of layers whose gradients are sharded are those of a plain loop over all of them.
func TestNorms(t *testing.T) {
	units := [][]int{{7, 30}, {100}, {3}}
	gradient := func(unit, param, i, rank int) float32 {
		return float32(unit+1) * float32(i%5-2) * float32(rank+1+param)
	}
	for stage := range 4 {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			m, err := zero.New[float32, float32](t.Context(), c, units, &zero.Options{Stage: stage})
			require.NoError(t, err)
			defer m.Close()
			metrics := ccltest.Split(t, c, 0, 0)
			n := grads.NewNorms("a", "b", "c")
			for range 2 { // the second step begins with zeros
				for u := len(units) - 1; u >= 0; u-- {
					g, err := m.Grads(t.Context(), u)
					require.NoError(t, err)
					for j := range g {
						for i := range g[j] {
							g[j][i] = gradient(u, j, i, c.Rank())
						}
					}
					require.NoError(t, m.Reduce(u))
				}
				require.NoError(t, m.Step(t.Context(), func(p zero.Piece, _, g []float32) error {
					if stage > 0 || c.Rank() == 0 {
						n.Add(p.Unit, grads.Squares(g))
					}
					return nil
				}))
				got, err := n.Over(t.Context(), metrics)
				require.NoError(t, err)
				for u, lens := range units {
					sum := 0.
					for j, l := range lens {
						for i := range l {
							x := (float64(gradient(u, j, i, 0)) + float64(gradient(u, j, i, 1)) + float64(gradient(u, j, i, 2))) / 3
							sum += x * x
						}
					}
					require.Equal(t, "norm/"+string(rune('a'+u)), got[u].Name)
					require.InEpsilon(t, math.Sqrt(sum), got[u].Value, 1e-6, "stage %d, unit %d", stage, u)
				}
			}
		})
	}
	n := grads.NewNorms("x")
	n.Add(0, grads.Squares([]float64{3, 4}))
	got, err := n.Over(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []history.Metric{{Name: "norm/x", Value: 5}}, got)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		n.Add(0, 1)
		if _, err := n.Over(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}))
}

// Of gradients that are a signal and noise of known variance, what is found is their ratio.
func TestNoise(t *testing.T) {
	const dims, samples, ranks, steps = 50, 4, 3, 2000
	for _, tc := range []struct{ signal, sigma float64 }{{1, 1}, {.5, 2}, {3, .5}} {
		want := tc.sigma * tc.sigma / (tc.signal * tc.signal) // the dimensions are alike
		r := rand.New(rand.NewPCG(1, 2))
		n := grads.Noise{Ranks: ranks, Samples: samples, Keep: .999}
		require.True(t, math.IsNaN(n.Scale()))
		for range steps {
			mean, small := make([]float64, dims), 0.
			for range ranks {
				for i := range mean {
					g := 0.
					for range samples {
						g += (tc.signal + tc.sigma*r.NormFloat64()) / samples
					}
					small += g * g / ranks
					mean[i] += g / ranks
				}
			}
			n.Add(small, grads.Squares(mean))
		}
		require.InEpsilon(t, want, n.Scale(), .1, "%+v", tc)
		before := n.Scale()
		n.Add(math.NaN(), 1) // a step that is skipped
		n.Add(math.Inf(1), 1)
		require.Equal(t, before, n.Scale())
	}
	// Norms as they are on average: |G|^2 = 10, a variance of 24, on 2 ranks of 4 samples.
	n := grads.Noise{Ranks: 2, Samples: 4}
	n.Add(10+24./4, 10+24./8)
	require.InDelta(t, 2.4, n.Scale(), 1e-12)
	n = grads.Noise{Ranks: 2, Samples: 4}
	n.Add(10, 1) // noise alone
	require.True(t, math.IsNaN(n.Scale()))
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		n := grads.Noise{Ranks: 2, Samples: 4}
		got, err := n.Over(t.Context(), c, 15+2*float64(c.Rank()), 13)
		require.NoError(t, err)
		require.InDelta(t, 2.4, got, 1e-12)
	})
}

// Two layers, in two steps.
func ExampleNorms() {
	n := grads.NewNorms("embedding", "head")
	for range 2 {
		n.Add(0, grads.Squares([]float32{3, 4}))
		n.Add(1, grads.Squares([]float32{1, 1, 1, 1}))
		metrics, err := n.Over(context.Background(), nil)
		fmt.Println(metrics, err)
	}
	// Output:
	// [{norm/embedding 5} {norm/head 2}] <nil>
	// [{norm/embedding 5} {norm/head 2}] <nil>
}

// Two ranks of 4 rows each: the mean of the squares of their norms is 16, and that of the average is 13.
func ExampleNoise() {
	n := grads.Noise{Ranks: 2, Samples: 4}
	n.Add(16, 13)
	fmt.Printf("%.1f rows\n", n.Scale())
	// Output: 2.4 rows
}
