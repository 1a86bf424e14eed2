package zero_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/zero"
)

// With Sum the gradients of all ranks, replicas and micro batches add up, and so does their norm.
func TestSum(t *testing.T) {
	testSum[float32, float32](t, false, func(x int) float32 { return float32(x) })
	testSum[ccl.BFloat16, float32](t, false, func(x int) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) })
	testSum[ccl.BFloat16, float32](t, true, func(x int) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) })
}

func testSum[P zero.Float, M ~float32 | ~float64](t *testing.T, wide bool, of func(int) P) {
	for stage := range 4 {
		for _, micros := range []int{1, 3} {
			for _, replicas := range []int{1, 2} {
				t.Run(fmt.Sprintf("%v, stage %d, %d micro batches, %d replicas, ReduceMaster %v", ccl.TypeOf[P](), stage, micros, replicas, wide), func(t *testing.T) {
					ccltest.Run(t, 2*replicas, func(t testing.TB, c *ccl.Comm) {
						ctx := t.Context()
						grid, err := mesh.New(ctx, c, mesh.Dim{Name: "replicas", Size: replicas}, mesh.Dim{Name: "shards"})
						require.NoError(t, err)
						defer grid.Close()
						o := &zero.Options{Stage: stage, Micro: micros, Sum: true, ReduceMaster: wide}
						if replicas > 1 {
							o.Replicas = grid.Comm("replicas")
						}
						m := newModel[P, M](t, grid.Comm("shards"), [][]int{{1, 2}, {70}}, o)
						defer m.Close()
						want := 0 // of element 0: small whole numbers, which no type rounds
						for r := range c.Size() {
							for micro := range micros {
								want += r + micro
							}
						}
						for range 2 {
							for micro := range micros {
								for i := range 2 {
									g := gradsOf(t, m, i)
									for j := range g {
										for k := range g[j] {
											add := c.Rank() + micro
											if micro > 0 && stage < 2 && ccl.TypeOf[P]() == ccl.TypeOf[M]() { // it holds what was added before
												for before := range micro {
													add += c.Rank() + before
												}
											}
											g[j][k] = of(add)
										}
									}
									require.NoError(t, m.Reduce(i))
								}
							}
							seen := 0
							require.NoError(t, m.Step(ctx, func(_ zero.Piece, _, g []M) error {
								for _, x := range g {
									seen++
									require.Equal(t, M(want), x)
								}
								return nil
							}))
							require.Positive(t, seen)
							require.InDelta(t, float64(want*want*73), m.Norm()*m.Norm(), 1e-6)
						}
					})
				})
			}
		}
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := zero.New[float32, float32](t.Context(), c, [][]int{{1}}, &zero.Options{Sum: c.Rank() == 0})
		require.ErrorContains(t, err, "Sum")
	})
}

// Two ranks have 1 and 3 rows, and each divides the sum of its losses by all 4: their gradients add up to those of the mean, and the
// step is that of one rank with all rows.
func ExampleOptions_sum() {
	ctx := context.Background()
	rows := [][]float32{{4}, {0, 8, 8}} // the gradient of each row's loss
	ccltest.Example(2, func(c *ccl.Comm) error {
		m, err := zero.New[float32, float32](ctx, c, [][]int{{1}}, &zero.Options{Stage: 2, Sum: true})
		if err != nil {
			return err
		}
		defer m.Close()
		g, err := m.Grads(ctx, 0)
		if err != nil {
			return err
		}
		for _, x := range rows[c.Rank()] {
			g[0][0] += x / 4
		}
		if err := m.Reduce(0); err != nil {
			return err
		}
		return m.Step(ctx, func(p zero.Piece, w, g []float32) error {
			fmt.Println("the owner has", g)
			return nil
		})
	})
	// Output: the owner has [5]
}
