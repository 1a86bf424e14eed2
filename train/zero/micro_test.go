package zero_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// Gradients in bfloat16 of many micro batches add up in the masters' type, at every stage: a sum in bfloat16 would stay at
// 256 times the gradient of one. What is left is the rounding of the average, and of what is reduced.
func TestManyMicroBatchesInBFloat16(t *testing.T) {
	const n, micro = 100, 300
	for stage := range 4 {
		for _, wide := range []bool{false, true} {
			for _, replicas := range []bool{false, true} {
				if testing.Short() && replicas && wide {
					continue
				}
				ranks := 2
				if replicas {
					ranks = 4
				}
				ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
					ctx := t.Context()
					c, o := world, &zero.Options{Stage: stage, Micro: micro, ReduceMaster: wide}
					if replicas {
						c = ccltest.Split(t, world, world.Rank()/2, 0)
						o.Replicas = ccltest.Split(t, world, world.Rank()%2, 0)
					}
					m := newModel[ccl.BFloat16, float32](t, c, [][]int{{n}, {30}}, o)
					for step, micros := range []int{micro, 3, 1, 2} { // 3 and 1: the last of an epoch
						require.NoError(t, m.Short(micros))
						want := make([]float64, n)
						for r := range world.Size() {
							rnd := rand.New(rand.NewPCG(uint64(step), uint64(r)))
							for range micros {
								var g [][]ccl.BFloat16
								if r == world.Rank() {
									for i := range 2 {
										g = gradsOf(t, m, 1-i)
										if i == 0 {
											require.NoError(t, m.Reduce(1))
										}
									}
								}
								for k := range n {
									x := ccl.ToBFloat16(1)
									if k > 0 {
										x = ccl.ToBFloat16(float32(1 + rnd.Float64()))
									}
									want[k] += float64(x.Float32()) / float64(micros*world.Size())
									if g != nil {
										require.Zero(t, g[0][k])
										g[0][k] = x
									}
								}
								if g != nil {
									require.NoError(t, m.Reduce(0))
								}
							}
						}
						most := 0.
						require.NoError(t, m.Step(ctx, func(p zero.Piece, _, g []float32) error {
							for k, x := range g {
								if p.Unit == 0 {
									most = max(most, math.Abs(float64(x)/want[p.Lo+k]-1))
								}
								if p.Unit == 0 && p.Lo+k == 0 {
									require.Equal(t, float32(1), x)
								}
								if p.Unit == 1 {
									require.Zero(t, x)
								}
							}
							return nil
						}))
						// One rounding of bfloat16 each, of the sum and of the average, and another over the replicas.
						bound := 3 * 1. / 256
						if wide {
							bound = 1e-5
						}
						require.LessOrEqual(t, most, bound, "stage %d, ReduceMaster %v, replicas %v, %d micro batches", stage, wide, replicas, micros)
					}
					require.NoError(t, m.Close())
				})
			}
		}
	}
}

// NeedOf is what a model has of parameters, gradients and masters, but for padding.
func TestNeedOf(t *testing.T) {
	const n = 3 * 128 * 5 // 64 bytes are 32 elements on each of 4 ranks: no padding
	units := [][]int{{128 * 5, 128 * 5}, {128 * 5}}
	for stage := range 4 {
		for _, micro := range []int{1, 4} {
			for _, wide := range []bool{false, true} {
				for _, ranks := range []int{1, 4} {
					o := &zero.Options{Stage: stage, Micro: micro, ReduceMaster: wide}
					has := func(b zero.Bytes) int64 { return b.Params + b.Grads + b.Master }
					what := fmt.Sprintf("%+v, %d ranks", *o, ranks)
					ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
						a := newModel[ccl.BFloat16, float32](t, c, units, o)
						require.Equal(t, zero.NeedOf[ccl.BFloat16, float32](n, ranks, o, 0), has(a.Bytes()), "bfloat16, %s", what)
						b := newModel[float32, float32](t, c, units, o)
						require.Equal(t, zero.Need(n, stage, ranks, 4, 4, 0), has(b.Bytes()), "float32, %s", what)
						require.Equal(t, zero.NeedOf[float32, float32](n, ranks, o, 0), has(b.Bytes()), "float32, %s", what)
						require.NoError(t, a.Close())
						require.NoError(t, b.Close())
					})
				}
			}
		}
	}
	require.Equal(t, zero.Need(1000, 2, 4, 2, 2, 12), zero.NeedOf[ccl.BFloat16, float32](1000, 4, &zero.Options{Stage: 2}, 8))
	require.Equal(t, zero.Need(1000, 0, 4, 4, 4, 8), zero.NeedOf[float32, float32](1000, 4, nil, 8))
}

// Gradients that are no numbers change nothing, on any rank, and the next step is made, with Clip and without, where Norm is the
// norm, too; with Unchecked they are applied.
func TestNotFinite(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		for stage := range 4 {
			for _, o := range []zero.Options{{Clip: 1}, {}, {Unchecked: true}} {
				for _, micro := range []int{1, 2} {
					o.Stage, o.Micro = stage, micro
					m := newModel[float32, float32](t, c, [][]int{{30}, {40}}, &o)
					for _, x := range []float64{math.NaN(), math.Inf(1), 4} {
						for range micro {
							backward(t, m, 2, func(i int, g [][]float32) {
								if c.Rank() == 2 && i == 1 {
									g[0][39] += float32(3 * x)
								} else if i == 0 {
									g[0][0] += 3
								}
							})
						}
						updated := 0
						err := m.Step(ctx, func(zero.Piece, []float32, []float32) error { updated++; return nil })
						switch {
						case o.Unchecked:
							require.NoError(t, err)
							require.Zero(t, m.Norm())
						case x == 4:
							require.NoError(t, err)
							require.Equal(t, 5., m.Norm())
						default:
							require.ErrorIs(t, err, zero.ErrNotFinite)
							require.ErrorContains(t, err, "unit 1, part 2 of 3")
							require.Zero(t, updated)
						}
					}
					require.NoError(t, m.Close())
				}
			}
		}
	})
}
