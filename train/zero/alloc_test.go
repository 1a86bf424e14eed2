package zero_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// After the third step a step allocates nothing, at any stage, on any rank: AllocsPerRun counts for the whole process.
func TestStepAllocatesNothing(t *testing.T) {
	const runs = 5
	units := [][]int{{300, 5}, {4000}, {70}, {900, 1}}
	step := func(t testing.TB, m *zero.Model[float32, float32], micros int, update zero.Update[float32]) {
		ctx := t.Context()
		for range micros {
			for i := range units {
				_, err := m.Params(ctx, i)
				require.NoError(t, err)
				m.Release(i)
			}
			for i := len(units) - 1; i >= 0; i-- {
				_, err := m.Params(ctx, i)
				require.NoError(t, err)
				g, err := m.Grads(ctx, i)
				require.NoError(t, err)
				g[0][0] += 1e-3
				m.Release(i)
				require.NoError(t, m.Reduce(i))
			}
		}
		require.NoError(t, m.Step(ctx, update))
	}
	for stage := range 4 {
		for _, micros := range []int{1, 2} {
			t.Run(fmt.Sprintf("stage %d, %d micro batches", stage, micros), func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
					m, err := zero.New[float32, float32](t.Context(), c, units, &zero.Options{Stage: stage, Micro: micros, Clip: .5})
					require.NoError(t, err)
					update := func(_ zero.Piece, w, g []float32) error {
						for i := range w {
							w[i] -= g[i]
						}
						return nil
					}
					for range 3 {
						step(t, m, micros, update)
					}
					got := math.Inf(1)
					for range 3 { // the least: others of the process may have had something to do
						require.NoError(t, ccl.Barrier(t.Context(), c))
						if c.Rank() == 0 {
							got = min(got, testing.AllocsPerRun(runs, func() { step(t, m, micros, update) }))
							continue
						}
						for range runs + 1 {
							step(t, m, micros, update)
						}
						got = 0
					}
					require.Zero(t, got)
					require.NoError(t, m.Close())
				})
			})
		}
	}
}

// The same where gradients of several micro batches add up in the type of the masters.
func TestAccumulationAllocatesNothing(t *testing.T) {
	const runs = 5
	units := [][]int{{300, 5}, {4000}, {70}}
	for stage := range 4 {
		for _, wide := range []bool{false, true} {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				m, err := zero.New[ccl.BFloat16, float32](ctx, c, units, &zero.Options{Stage: stage, Micro: 3, ReduceMaster: wide})
				require.NoError(t, err)
				update := func(zero.Piece, []float32, []float32) error { return nil }
				step := func() {
					for range 3 {
						for i := len(units) - 1; i >= 0; i-- {
							if _, err := m.Grads(ctx, i); err != nil {
								t.Error(err)
							}
							if err := m.Reduce(i); err != nil {
								t.Error(err)
							}
						}
					}
					if err := m.Step(ctx, update); err != nil {
						t.Error(err)
					}
				}
				for range 3 {
					step()
				}
				got := math.Inf(1)
				for range 3 { // the least: others of the process may have had something to do
					require.NoError(t, ccl.Barrier(ctx, c))
					if c.Rank() == 0 {
						got = min(got, testing.AllocsPerRun(runs, step))
						continue
					}
					for range runs + 1 { // AllocsPerRun makes one more
						step()
					}
				}
				if c.Rank() == 0 {
					require.Zero(t, got, "stage %d, ReduceMaster %v", stage, wide)
				}
				require.NoError(t, m.Close())
			})
		}
	}
}
