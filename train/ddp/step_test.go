package ddp_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/mesh"
)

// After the third step Ready and Wait allocate nothing, nor do the Hooks.
func TestStepAllocatesNothing(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "outer", Size: 1}, mesh.Dim{Name: "inner", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		for i, hook := range []ddp.Hook{nil, ddp.BFloat16, ddp.Hierarchical(m.Comm("inner"), m.Comm("outer"))} {
			var bufs []ccl.Buf
			for i := range 10 {
				bufs = append(bufs, ccl.BufOf(make([]float32, 1+i*300)))
			}
			r := newReducer(t, c, bufs, &ddp.Options{FirstBytes: 1 << 10, Bytes: 1 << 12, Hook: hook})
			step := func() { require.NoError(t, r.All(t.Context())) }
			require.Zero(t, ccltest.Allocs(t, c, 5, step), "hook %d", i)
			require.NoError(t, r.Close())
		}
	})
}

// A rank hands over the bytes of its gradients once: an all-reduce of them, which takes 2(N-1)/N times as many.
func TestVolume(t *testing.T) {
	const n, steps = 4, 5
	var sent atomic.Int64
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		_, bufs := gradients(true, slices.Repeat([]int{1000}, 10)...)
		r := newReducer(t, c, bufs, &ddp.Options{FirstBytes: 1 << 10, Bytes: 1 << 14})
		defer r.Close()
		for range steps {
			require.NoError(t, r.All(t.Context()))
			require.EqualValues(t, 40_000, r.Stats().Bytes)
		}
	}, ccltest.With(ccl.Options{OnCall: func(o ccl.Observation) {
		if o.Call.Type == ccl.TypeFloat32 {
			if o.Call.Kind != ccl.KindAllReduce {
				panic(o.Call.Kind)
			}
			sent.Add(int64(o.Call.Count) * 4)
		}
	}}))
	require.EqualValues(t, n*steps*40_000, sent.Load())
}

// Gradients that become ready while something else computes, which is stood for by waiting as for a GPU, are averaged
// meanwhile: what Wait waits for is the last bucket. Beside other programs communication takes longer than on a machine of
// its own, so the computation becomes longer until there is time for it.
func TestOverlap(t *testing.T) {
	const parts, limit = 48, .5
	size := 100 << 20
	if testing.Short() {
		size = 10 << 20
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		all, err := ccl.MakeSlice[float32](t.Context(), c, size/4)
		require.NoError(t, err)
		defer ccl.FreeSlice(all)
		var bufs []ccl.Buf
		k := len(all) / parts
		for i := range parts {
			bufs = append(bufs, ccl.BufOf(all[i*k:(i+1)*k]))
		}
		r := newReducer(t, c, bufs, &ddp.Options{Bytes: size / 12})
		defer r.Close()
		worst := []float64{math.Inf(1)} // of the ranks, each at its best
		for pause := 3 * time.Millisecond; worst[0] >= limit && pause <= 24*time.Millisecond; pause *= 2 {
			best := math.Inf(1)
			for range 6 {
				for i := parts - 1; i >= 0; i-- {
					time.Sleep(pause)
					require.NoError(t, r.Ready(i))
				}
				require.NoError(t, r.Wait(t.Context()))
				s := r.Stats()
				best = min(best, float64(s.Exposed)/float64(s.Comm))
			}
			t.Logf("rank %d, pauses of %v: at best %.1f %% of the communication is exposed", c.Rank(), pause, 100*best)
			require.NoError(t, ccl.AllReduce(t.Context(), c, worst, []float64{best}, ccl.Max))
		}
		require.Less(t, worst[0], limit, "promised: .1 on a machine of its own")
	}, ccltest.Processes(2))
}
