package zero_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// After the third step a step allocates nothing, at any stage, on any rank: AllocsPerRun counts for the whole process.
func TestStepAllocatesNothing(t *testing.T) {
	units := [][]int{{300, 5}, {4000}, {70}, {900, 1}}
	step := func(t testing.TB, m *zero.Model[float32, float32], micros int, update zero.Update[float32]) {
		ctx := t.Context()
		for range micros {
			forward(t, m, len(units))
			backward(t, m, len(units), func(_ int, g [][]float32) { g[0][0] += 1e-3 })
		}
		require.NoError(t, m.Step(ctx, update))
	}
	for stage := range 4 {
		for _, micros := range []int{1, 2} {
			t.Run(fmt.Sprintf("stage %d, %d micro batches", stage, micros), func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
					m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage, Micro: micros, Clip: .5})
					update := func(_ zero.Piece, w, g []float32) error {
						for i := range w {
							w[i] -= g[i]
						}
						return nil
					}
					require.Zero(t, ccltest.Allocs(t, c, 5, func() { step(t, m, micros, update) }))
					require.NoError(t, m.Close())
				})
			})
		}
	}
}

// The same where gradients of several micro batches add up in the type of the masters.
func TestAccumulationAllocatesNothing(t *testing.T) {
	units := [][]int{{300, 5}, {4000}, {70}}
	for stage := range 4 {
		for _, wide := range []bool{false, true} {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				m := newModel[ccl.BFloat16, float32](t, c, units, &zero.Options{Stage: stage, Micro: 3, ReduceMaster: wide})
				step := func() {
					for range 3 {
						for i := len(units) - 1; i >= 0; i-- {
							gradsOf(t, m, i)
							require.NoError(t, m.Reduce(i))
						}
					}
					require.NoError(t, m.Step(ctx, noUpdate))
				}
				require.Zero(t, ccltest.Allocs(t, c, 5, step), "stage %d, ReduceMaster %v", stage, wide)
				require.NoError(t, m.Close())
			})
		}
	}
}
