package zero_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// What a rank sends in a step, of 2(N-1)/N times the gradients that plain data parallelism sends: at stages 0 to 2 the
// same bytes, at stage 3 half as much again, but for the unit at which the backward pass begins, which is still there.
func TestVolume(t *testing.T) {
	const n, steps = 4, 3
	units := [][]int{{64 * 9}, {64 * 20, 64 * 3}, {64 * 7}} // of whole parts: nothing is padded
	all, last := int64(4*64*39), int64(4*64*7)
	for stage, want := range []int64{2 * all, 2 * all, 2 * all, 3*all - last} {
		var sent atomic.Int64 // by all ranks, times n/(n-1)
		counts := func(o ccl.Observation) {
			if o.Call.Type != ccl.TypeFloat32 {
				return // New compares arguments
			}
			bytes := int64(o.Call.Count) * int64(o.Call.Type.Size())
			switch o.Call.Kind {
			case ccl.KindAllReduce:
				bytes *= 2
			case ccl.KindReduceScatter, ccl.KindAllGather:
				bytes *= n // of blocks
			default:
				bytes = 0
			}
			sent.Add(bytes)
		}
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage})
			for range steps {
				forward(t, m, len(units))
				backward(t, m, len(units), noGrads)
				require.NoError(t, m.Step(ctx, noUpdate))
				require.Equal(t, all, m.Stats().Reduced)
			}
			require.NoError(t, m.Close())
		}, ccltest.With(ccl.Options{OnCall: counts}))
		want *= steps
		if stage == 3 { // the first step knows no order yet, and the last has begun to gather for one that never comes
			want += last + int64(4*64*9)
		}
		require.Equal(t, want*n, sent.Load(), "stage %d", stage)
	}
}
