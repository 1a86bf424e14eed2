package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
)

// codebook is the paper's tree: 10^-k of as many even parts of the interval from .1 to 1 as the bits behind the k zeros
// can tell, by their upper ends.
func codebook(bits int) (list []float64) {
	for zeros := range 7 {
		n := 1 << (bits - zeros)
		for k := 1; k <= n; k++ {
			list = append(list, math.Pow10(-zeros)*(.1+.9*float64(k)/float64(n)))
		}
	}
	slices.Sort(list)
	return list
}

// nearest is the part of a codebook that is nearest to x, from the first on.
func nearest(book []float64, x float64) float64 {
	best := book[0]
	for _, part := range book {
		if math.Abs(part-x) < math.Abs(best-x) {
			best = part
		}
	}
	return best
}

// Moments in 8 bits are those that a plain loop rounds to the nearest part of a block's largest, after each step.
func TestApply8(t *testing.T) {
	const n, blocks = 600, 3
	r := rand.New(rand.NewPCG(5, 6))
	s := optim.NewMoments8(n)
	p, want, wm, wv := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	signed, unsigned := append(codebook(6), 0), codebook(7)
	h := optim.AdamW{LR: 1e-2, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1}
	for step := 1; step <= 10; step++ {
		g := make([]float64, n)
		for i := range g {
			if g[i] = r.NormFloat64() * math.Pow(10, -4*r.Float64()); i%50 == 0 {
				g[i] = 0
			}
		}
		require.NoError(t, optim.Apply8(h, step, p, g, s))
		for i := range g {
			wm[i], wv[i] = .9*wm[i]+.1*g[i], .95*wv[i]+.05*g[i]*g[i]
			want[i] -= 1e-2 * .1 * want[i]
			want[i] -= 1e-2 * (wm[i] / (1 - math.Pow(.9, float64(step)))) / (math.Sqrt(wv[i]/(1-math.Pow(.95, float64(step)))) + 1e-8)
		}
		for b := range blocks {
			lo, hi := b*256, min(b*256+256, n)
			mMost, vMost := 0., 0.
			for i := lo; i < hi; i++ {
				mMost, vMost = max(mMost, math.Abs(wm[i])), max(vMost, wv[i])
			}
			for i := lo; i < hi; i++ {
				wm[i] = math.Copysign(mMost*nearest(signed, math.Abs(wm[i])/mMost), wm[i])
				if wv[i] > 0 {
					wv[i] = vMost * nearest(unsigned, wv[i]/vMost)
				}
			}
		}
		m, v := make([]float32, n), make([]float32, n)
		require.NoError(t, s.Store(m, v))
		for i := range m {
			if math.Abs(wm[i]-float64(m[i])) > 1e-6*(1+math.Abs(wm[i])) || math.Abs(wv[i]-float64(v[i])) > 1e-6*(1+wv[i]) || (wv[i] > 0) != (v[i] > 0) {
				t.Fatalf("step %d, element %d: the moments are %v and %v, not %v and %v", step, i, m[i], v[i], wm[i], wv[i])
			}
		}
		require.InDeltaSlice(t, want, p, 1e-4, "step %d", step) // a moment between two parts may go the other way
	}
	require.Equal(t, 2*n+8*blocks, s.Bytes())
}

// What is stored is loaded with the same codes: the run goes on with the same bits. Pieces of whole blocks have the bits of the whole.
func TestMoments8Last(t *testing.T) {
	const n = 1000
	whole, again, cut := newState(n), newState(n), newState(n)
	h := optim.AdamW{LR: 3e-4, Decay: .1}
	a, b := optim.NewMoments8(n), optim.NewMoments8(n)
	parts := []*optim.Moments8{optim.NewMoments8(512), optim.NewMoments8(n - 512)}
	for step := 1; step <= 20; step++ {
		require.NoError(t, optim.Apply8(h, step, whole.p, whole.g, a))
		require.NoError(t, optim.Apply8(h, step, again.p, again.g, b))
		require.NoError(t, optim.Apply8(h, step, cut.p[:512], cut.g[:512], parts[0]))
		require.NoError(t, optim.Apply8(h, step, cut.p[512:], cut.g[512:], parts[1]))
		m, v := make([]float32, n), make([]float32, n)
		require.NoError(t, b.Store(m, v))
		b = optim.NewMoments8(n)
		require.NoError(t, b.Load(m, v))
	}
	require.Equal(t, whole.p, again.p)
	require.Equal(t, whole.p, cut.p)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		require.NoError(t, optim.Apply8(h, 21, whole.p, whole.g, a))
	}))
}

func TestMoments8BadInput(t *testing.T) {
	x, s := []float32{1, 2}, optim.NewMoments8(1)
	require.EqualError(t, optim.Apply8(optim.AdamW{}, 1, x, x, s), "optim: 2 parameters, but 2 gradients, and 8-bit state of 1")
	require.EqualError(t, optim.Apply8(optim.AdamW{}, 1, x, x, nil), "optim: 2 parameters, but 2 gradients, and 8-bit state of 0")
	require.EqualError(t, optim.Apply8(optim.AdamW{}, 0, x[:1], x[:1], s), "optim: step 0; steps are counted from 1")
	require.EqualError(t, optim.Apply8(optim.AdamW{}, 0, x[:0], x[:0], optim.NewMoments8(-1)), "optim: step 0; steps are counted from 1")
	require.Error(t, s.Load(x, x))
	require.Error(t, s.Store(x[:1], x))
	// What is not finite stays so, and breaks nothing.
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		p, s := []float32{1, 1}, optim.NewMoments8(2)
		for step := 1; step < 4; step++ {
			require.NoError(t, optim.Apply8(optim.AdamW{LR: .1}, step, p, []float32{bad, 1}, s))
		}
		require.Contains(t, fmt.Sprint(p), "NaN")
	}
}
