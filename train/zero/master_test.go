package zero_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// Parameters in bfloat16 with masters in float32: every stage comes to the same masters, which hold what bfloat16
// cannot, and to the same parameters, which are the masters rounded.
func TestMasters(t *testing.T) {
	units := [][]int{{5, 40}, {33}}
	for _, wide := range []bool{false, true} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			var want [][]float32 // of stage 0
			for stage := range 4 {
				m := newModel[ccl.BFloat16, float32](t, c, units, &zero.Options{Stage: stage, ReduceMaster: wide})
				for i, lens := range units {
					require.NoError(t, m.Load(t.Context(), i, whole(lens, func(k int) float32 { return 1 + float32(k)/7 }), 1))
				}
				for step := range 3 {
					backward(t, m, 2, func(_ int, g [][]ccl.BFloat16) {
						for j := range g {
							for k := range g[j] {
								g[j][k] = ccl.ToBFloat16(float32(c.Rank()+1) * float32(step+k%8))
							}
						}
					})
					require.NoError(t, m.Step(t.Context(), func(_ zero.Piece, w, g []float32) error {
						for k := range w {
							w[k] -= 1e-4 * g[k]
						}
						return nil
					}))
				}
				for i, lens := range units {
					all := slices.Clone(m.Shard(i))
					if stage > 0 {
						all = make([]float32, len(all)*c.Size())
						require.NoError(t, ccl.AllGather(t.Context(), c, all, m.Shard(i)))
					} else {
						want = append(want, all)
					}
					require.Zero(t, differ(want[i], all), "stage %d, unit %d", stage, i)
					require.InDelta(t, 1-1e-4*2*(0+1+2), all[0], 1e-6)
					p := paramsOf(t, m, i)
					at := 0
					for j, n := range lens {
						for k := range n {
							require.Equal(t, ccl.ToBFloat16(all[at+k]), p[j][k])
						}
						at += n
					}
					m.Release(i)
				}
				require.NoError(t, m.Close())
			}
		})
	}
}
