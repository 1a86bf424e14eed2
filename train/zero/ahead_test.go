package zero_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

// gathers are the parts that a rank has gathered, in order.
type gathers struct {
	sync.Mutex
	parts []int
}

func (g *gathers) take() (parts []int) {
	g.Lock()
	defer g.Unlock()
	parts, g.parts = g.parts, nil
	return parts
}

// come waits until these gathers have ended, and no others.
func (g *gathers) come(t testing.TB, want []int, what string) {
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		g.Lock()
		defer g.Unlock()
		assert.Equal(t, want, g.parts)
	}, 20*time.Second, time.Millisecond, what)
}

// Stage 3 gathers what comes next in the order that the first step has shown, before it is asked for; in the first step
// it gathers what it is asked for. Stages 1 and 2 gather all units, in forward order, once Step has returned.
func TestGathersAhead(t *testing.T) {
	units, order := [][]int{{20}, {60}, {100}, {140}}, []int{2, 0, 3, 1}
	parts := []int{16, 32, 64, 80} // of two ranks, padded to cache lines
	for _, tc := range []struct{ stage, ahead int }{{1, 1}, {2, 1}, {3, 1}, {3, 2}} {
		t.Run(fmt.Sprintf("stage %d, %d ahead", tc.stage, tc.ahead), func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				ctx, seen := t.Context(), &gathers{}
				c, err := world.SplitWith(ctx, 0, world.Rank(), func(o *ccl.Options) {
					o.OnCall = func(k ccl.Observation) {
						if k.Call.Kind == ccl.KindAllGather && k.Call.Type == ccl.TypeFloat32 {
							seen.Lock()
							seen.parts = append(seen.parts, int(k.Call.Count))
							seen.Unlock()
						}
					}
				})
				require.NoError(t, err)
				defer c.Close()
				m := newModel[float32, float32](t, c, units, &zero.Options{Stage: tc.stage, Ahead: tc.ahead})
				for step := range 3 {
					for p, i := range order {
						paramsOf(t, m, i)
						if tc.stage == 3 {
							n := p + 1
							if step > 0 {
								n = min(n+tc.ahead, len(order))
							}
							var want []int
							for _, u := range order[:n] {
								want = append(want, parts[u])
							}
							seen.come(t, want, fmt.Sprintf("step %d, unit %d", step, i))
						}
						m.Release(i)
					}
					for i := len(units) - 1; i >= 0; i-- {
						gradsOf(t, m, i)
						require.NoError(t, m.Reduce(i))
					}
					require.NoError(t, ccl.Barrier(ctx, world))
					seen.take()
					require.NoError(t, m.Step(ctx, noUpdate))
					want := parts
					if tc.stage == 3 {
						want = nil
						for _, u := range order[:tc.ahead] {
							want = append(want, parts[u])
						}
					}
					seen.come(t, want, fmt.Sprintf("after step %d", step))
				}
				require.NoError(t, m.Close())
			})
		})
	}
}
