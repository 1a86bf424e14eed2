package zero_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// A step that goes over no piece has still waited for its gradients: those of the next step are whole.
func TestStepWithoutPass(t *testing.T) {
	const n, steps = 1 << 18, 20
	for stage := range 4 {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel[float32, float32](t, c, [][]int{{n}, {n}}, &zero.Options{Stage: stage, Unchecked: true})
			for step := 1; step <= steps; step++ {
				for i := range 2 {
					g := gradsOf(t, m, i)[0]
					for k := range g {
						g[k] += float32(step)
					}
					require.NoError(t, m.Reduce(i))
				}
				require.NoError(t, m.StepWith(t.Context(), func(each func(zero.Update[float32]) error) error {
					if step%2 == 1 {
						return nil
					}
					return each(func(p zero.Piece, w, g []float32) error {
						for k, x := range g {
							if x != float32(step) {
								return fmt.Errorf("element %d is %v, not %d", k, x, step)
							}
						}
						return nil
					})
				}))
			}
			require.NoError(t, m.Close())
		})
	}
}

// What run returns on one rank alone ends the step on all: an argument of a call of its own that was wrong, the error of a
// step that is skipped, and that of an Update that is nil.
func TestStepWithFailsOnAll(t *testing.T) {
	for what, fails := range map[string]func(c *ccl.Comm, each func(zero.Update[float32]) error) error{
		"argument": func(c *ccl.Comm, _ func(zero.Update[float32]) error) error {
			return ccl.Broadcast(t.Context(), c, []float32{1}, 7)
		},
		"not finite": func(*ccl.Comm, func(zero.Update[float32]) error) error {
			return fmt.Errorf("by an optimizer: %w", zero.ErrNotFinite)
		},
		"nil": func(_ *ccl.Comm, each func(zero.Update[float32]) error) error { return each(nil) },
	} {
		t.Run(what, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, 0)
				m := newModel[float32, float32](t, c, [][]int{{30}}, &zero.Options{Stage: 1})
				gradsOf(t, m, 0)
				require.NoError(t, m.Reduce(0))
				require.Error(t, m.StepWith(t.Context(), func(each func(zero.Update[float32]) error) error {
					if c.Rank() == 1 {
						return fails(c, each)
					}
					return ccl.Barrier(t.Context(), c)
				}))
				hearsOfIt(t, c)
				ccltest.Barrier(t, world)
				require.NoError(t, m.Close())
			})
		})
	}
}
