package amp_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/zero"
)

// The scale falls in each step in which any rank overflows, and grows after three without, as by PyTorch's GradScaler with
// growth_interval=3: worked out by hand from that rule.
func TestScale(t *testing.T) {
	overflows := map[int]int{3: 0, 4: 2, 9: 1} // by step, on which rank
	want := []float64{8, 8, 8, 16, 8, 4, 4, 4, 8, 8, 4, 4, 4, 8}
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(3)}, {ccltest.Hosts(3)}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			o := &amp.Options{Init: 8, Interval: 3}
			s, err := amp.New(t.Context(), c, o)
			require.NoError(t, err)
			for step, scale := range want {
				require.Equal(t, scale, s.Scale(), "step %d", step)
				bad, overflow := overflows[step]
				ok, err := s.Step(t.Context(), !overflow || bad != c.Rank())
				require.NoError(t, err)
				require.Equal(t, !overflow, ok, "step %d", step)
				if step == 6 { // a checkpoint in between changes nothing
					again, err := amp.New(t.Context(), c, o)
					require.NoError(t, err)
					require.NoError(t, again.Restore(s.State()))
					s = again
				}
			}
			require.Equal(t, 3, s.State().Skipped)
		}, opts...)
	}
}

// trained is what a model of one matrix has become after some steps of fp16, and what the steps were.
type trained struct {
	w     []float32
	steps []bool
}

// In float16 with a scale a model is trained as a plain loop does it, whose float16 gradients are averaged and overflow
// where they do; by ddp, and by zero at all stages, and clipped.
func TestTraining(t *testing.T) {
	const n, size, steps, clip, rate = 2, 40, 12, 3., .05
	// gradient is that of a rank before scaling: some of it is lost in float16 without scaling; it is large in step 5.
	gradient := func(rank, step, i int) float64 {
		g := 1e-8 * float64(1+(i*7+step*3+rank)%11)
		if i%4 == 0 {
			g = float64(i+rank) / 16
		}
		if step == 5 && i == 8 && rank == 1 {
			g = 1e4
		}
		return g
	}
	plain := func() (out trained) {
		scale, good := 64., 0
		w := make([]float32, size)
		for step := range steps {
			g, sum, fine := make([]float64, size), 0., true
			for i := range g {
				mean := float32(0)
				for r := range n {
					mean += ccl.ToFloat16(float32(gradient(r, step, i) * scale)).Float32()
				}
				g[i] = float64(ccl.ToFloat16(mean / n).Float32())
				fine = fine && !math.IsInf(g[i], 0)
				sum += g[i] * g[i]
			}
			out.steps = append(out.steps, fine)
			if !fine {
				scale, good = scale/2, 0
				continue
			}
			by := min(1, clip/(math.Sqrt(sum)/scale+1e-6)) / scale
			for i := range g {
				w[i] -= rate * float32(g[i]*by)
			}
			if good++; good == 4 {
				scale, good = scale*2, 0
			}
		}
		out.w = w
		return out
	}
	want := plain()
	require.Equal(t, []bool{true, true, true, true, true, false, true, true, true, true, true, true}, want.steps)
	require.NotZero(t, want.w[1], "what is scaled is not lost")
	for stage := -1; stage < 4; stage++ { // -1 is ddp
		t.Run(fmt.Sprint("stage ", stage), func(t *testing.T) {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				s, err := amp.New(ctx, c, &amp.Options{Init: 64, Interval: 4})
				require.NoError(t, err)
				fill := func(g []ccl.Float16, step int) {
					for i := range g {
						g[i] = ccl.ToFloat16(float32(gradient(c.Rank(), step, i) * s.Scale()))
					}
				}
				got := trained{w: make([]float32, size)}
				if stage < 0 {
					g := make([]ccl.Float16, size)
					r, err := ddp.New(ctx, c, []ccl.Buf{ccl.BufOf(g)}, nil)
					require.NoError(t, err)
					defer r.Close()
					wide := make([]float32, size)
					for step := range steps {
						fill(g, step)
						require.NoError(t, r.All(ctx))
						norm, bad := r.Norm()
						by := s.Factor(clip, norm)
						ok, err := s.Step(ctx, !errors.Is(bad, ddp.ErrNotFinite))
						require.NoError(t, err)
						if got.steps = append(got.steps, ok); ok {
							require.True(t, amp.Multiply(wide, g, by))
							for i, x := range wide {
								got.w[i] -= rate * x
							}
						}
					}
				} else {
					m, err := zero.New[ccl.Float16, float32](ctx, c, [][]int{{size}}, &zero.Options{Stage: stage})
					require.NoError(t, err)
					defer m.Close()
					for step := range steps {
						_, err := m.Params(ctx, 0)
						require.NoError(t, err)
						m.Release(0)
						g, err := m.Grads(ctx, 0)
						require.NoError(t, err)
						fill(g[0], step)
						require.NoError(t, m.Reduce(0))
						bad := m.Step(ctx, func(_ zero.Piece, w, g []float32) error {
							amp.Multiply(g, g, s.Factor(clip, m.Norm()))
							for i := range w {
								w[i] -= rate * g[i]
							}
							return nil
						})
						if bad != nil {
							require.ErrorIs(t, bad, zero.ErrNotFinite)
						}
						ok, err := s.Step(ctx, bad == nil)
						require.NoError(t, err)
						got.steps = append(got.steps, ok)
					}
					whole := make([]float32, size)
					for _, p := range m.Pieces(0) {
						copy(whole[p.Lo:p.Hi], m.Shard(0)[p.At:])
					}
					if stage > 0 {
						require.NoError(t, ccl.AllReduce(ctx, c, whole, whole, ccl.Sum))
					}
					got.w = whole
				}
				require.Equal(t, want.steps, got.steps)
				for i := range want.w {
					require.InDelta(t, want.w[i], got.w[i], 1e-7*math.Abs(float64(want.w[i])), "element %d", i)
				}
			})
		})
	}
}

func TestMultiply(t *testing.T) {
	wide := make([]float64, 3)
	require.True(t, amp.Multiply(wide, []ccl.BFloat16{0x3f80, 0xc000, 0}, .25))
	require.Equal(t, []float64{.25, -.5, 0}, wide)
	for _, odd := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		x := []float64{1, odd, 2}
		require.False(t, amp.Multiply(x, x, 2))
		require.False(t, amp.Multiply(make([]float32, 3), []ccl.Float16{0x3c00, ccl.ToFloat16(float32(odd)), 0}, 2))
	}
	require.False(t, amp.Multiply(make([]float32, 1), []float64{1e39}, 1), "it becomes infinite as it is rounded")
	require.False(t, amp.Multiply(make([]float64, 2), []float64{1}, 1), "not as long")
	half, single := make([]ccl.Float16, 3), make([]float32, 3)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		amp.Multiply(single, half, 2)
		amp.Multiply(single, single, 2)
	}))
}

func TestErrors(t *testing.T) {
	_, err := amp.New(t.Context(), nil, nil)
	require.EqualError(t, err, "amp: the Comm is nil")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		for _, o := range []amp.Options{{Init: -1}, {Init: math.Inf(1)}, {Init: math.NaN()}, {Growth: .5}, {Backoff: 1}, {Backoff: -1}, {Interval: -1}, {Least: -1}, {Init: 1, Least: 2}} {
			_, err := amp.New(ctx, c, &o)
			require.ErrorContains(t, err, "amp: a scale that", "%+v", o)
		}
		_, err := amp.New(ctx, c, &amp.Options{Interval: 1 + c.Rank()})
		require.ErrorContains(t, err, "amp: ranks differ")
		s, err := amp.New(ctx, c, &amp.Options{Init: 1, Least: .25})
		require.NoError(t, err)
		for step := range 4 {
			ok, err := s.Step(ctx, c.Rank() == 1)
			require.False(t, ok)
			if step < 2 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, amp.ErrTooSmall)
				require.Equal(t, .25, s.Scale())
			}
		}
		for _, st := range []amp.State{{}, {Scale: .1}, {Scale: math.NaN()}, {Scale: 1, Good: -1}, {Scale: 1, Skipped: -1}} {
			require.ErrorContains(t, s.Restore(st), "amp: Restore of")
		}
		require.Zero(t, ccltest.Allocs(t, c, 5, func() { s.Step(ctx, true) }))
	})
}
