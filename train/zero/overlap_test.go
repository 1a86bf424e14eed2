package zero_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// While something else computes, which is stood for by waiting as for a GPU, parameters are gathered and gradients
// reduced. What a step waits for is the last unit's, at every stage. Beside other programs communication takes longer than on
// a machine of its own, so the computation becomes longer until there is time for it.
func TestOverlap(t *testing.T) {
	const limit = .95
	layers, size, rounds := 24, 100<<20, 4
	if testing.Short() {
		layers, size, rounds = 8, 8<<20, 2
	}
	var units [][]int
	for range layers {
		units = append(units, []int{size / 4 / layers})
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		for stage := range 4 {
			m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage})
			worst := []float64{math.Inf(1)} // of the ranks, each at its best
			for pause := 3 * time.Millisecond; worst[0] >= limit && pause <= 24*time.Millisecond; pause *= 2 {
				best := math.Inf(1)
				for range rounds {
					for i := range units {
						paramsOf(t, m, i)
						time.Sleep(pause)
						m.Release(i)
					}
					for i := layers - 1; i >= 0; i-- {
						paramsOf(t, m, i)
						gradsOf(t, m, i)
						time.Sleep(2 * pause)
						m.Release(i)
						require.NoError(t, m.Reduce(i))
					}
					require.NoError(t, m.Step(ctx, noUpdate))
					s := m.Stats()
					best = min(best, float64(s.Exposed)/float64(s.Comm))
				}
				t.Logf("stage %d, rank %d, pauses of %v: at best %.1f %% of the communication is exposed", stage, c.Rank(), pause, 100*best)
				require.NoError(t, ccl.AllReduce(ctx, c, worst, []float64{best}, ccl.Max))
			}
			require.Less(t, worst[0], limit, "stage %d; promised: .1 on a machine of its own", stage)
			require.NoError(t, m.Close())
		}
	}, ccltest.Processes(2))
}

// Two units' gradients are being averaged, and memory for a third's is asked for: it is that of the unit that was reduced
// first, since the later one's average may need what this rank computes next.
func TestGradsWaitForTheFirst(t *testing.T) {
	units := [][]int{{64}, {64}, {64}, {64}}
	for _, stage := range []int{2, 3} {
		asks, has := make(chan struct{}), make(chan struct{})
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage})
			for i := 3; i >= 0; i-- {
				switch { // the last but one unit is reduced by rank 0 alone until it has the last one's memory
				case i == 0 && c.Rank() == 0:
					close(asks)
				case i == 2 && c.Rank() == 1:
					<-asks
					time.Sleep(20 * time.Millisecond) // so that it waits
				case i == 1 && c.Rank() == 1:
					<-has
				}
				gradsOf(t, m, i)
				if i == 0 && c.Rank() == 0 {
					close(has)
				}
				require.NoError(t, m.Reduce(i))
			}
			require.NoError(t, m.Step(ctx, noUpdate))
			require.NoError(t, m.Close())
		}, ccltest.With(ccl.Options{Timeout: 10 * time.Second}))
	}
}
