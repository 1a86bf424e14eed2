package zero_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// After the third step a step allocates nothing, at any stage, on any rank: AllocsPerRun counts for the whole process. So it is
// where gradients of several micro batches add up in the type of the masters.
func TestStepAllocatesNothing(t *testing.T) {
	for stage := range 4 {
		for _, o := range []zero.Options{{Micro: 1, Clip: .5}, {Micro: 2, Clip: .5}} {
			testAllocs(t, stage, o, func(_ int, g [][]float32) { g[0][0] += 1 }) // which is clipped
		}
		for _, wide := range []bool{false, true} {
			testAllocs(t, stage, zero.Options{Micro: 3, ReduceMaster: wide}, noGrads[ccl.BFloat16])
		}
	}
}

func testAllocs[P zero.Float](t *testing.T, stage int, o zero.Options, fill func(unit int, g [][]P)) {
	o.Stage = stage
	units := [][]int{{300, 5}, {4000}, {70}, {900, 1}}
	t.Run(fmt.Sprintf("%v, stage %d, %d micro batches, ReduceMaster %v", ccl.TypeOf[P](), stage, o.Micro, o.ReduceMaster), func(t *testing.T) {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel[P, float32](t, c, units, &o)
			require.Zero(t, ccltest.Allocs(t, c, 5, func() {
				for range o.Micro {
					forward(t, m, len(units))
					backward(t, m, len(units), fill)
				}
				require.NoError(t, m.Step(t.Context(), noUpdate))
			}))
			require.NoError(t, m.Close())
		})
	})
}
