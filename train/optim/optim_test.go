package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/optim"
)

// What torch.optim.AdamW(lr=.1, betas=(.9, .95), eps=1e-8, weight_decay=.1) makes of a parameter 1 and these gradients, by
// the formula of the paper in float64.
func TestAdamW(t *testing.T) {
	h := optim.AdamW{LR: .1, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1}
	p, m, v := []float64{1}, []float64{0}, []float64{0}
	want, wm, wv := 1.0, 0.0, 0.0
	for step, g := range []float64{.5, -.25, 3, 0} {
		require.NoError(t, optim.Apply(h, step+1, p, []float64{g}, m, v))
		wm, wv = .9*wm+.1*g, .95*wv+.05*g*g
		want -= .1 * .1 * want
		n := float64(step + 1)
		want -= .1 * (wm / (1 - math.Pow(.9, n))) / (math.Sqrt(wv/(1-math.Pow(.95, n))) + 1e-8)
		require.InDelta(t, want, p[0], 1e-12, "step %d", step+1)
	}
}

// Zero values are those of torch.optim.AdamW, so a gradient of 0 leaves its parameter as it is.
func TestAdamWDefaults(t *testing.T) {
	p, m, v := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}
	q, n, w := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}
	for step := 1; step < 4; step++ {
		require.NoError(t, optim.Apply(optim.AdamW{LR: .01}, step, p, []float32{0, .5}, m, v))
		require.NoError(t, optim.Apply(optim.AdamW{LR: .01, Beta1: .9, Beta2: .999, Eps: 1e-8}, step, q, []float32{0, .5}, n, w))
	}
	require.Equal(t, q, p)
	require.Equal(t, float32(1), p[0])
	require.InDelta(t, .97, p[1], 1e-6)
}

// The first update is LR, whatever the betas: a gradient's average, corrected, is the gradient.
func TestFirstUpdate(t *testing.T) {
	for _, beta2 := range []float64{.9, .95, .99, .999, .9999, .99999, .999999} {
		p, m, v := []float32{0}, []float32{0}, []float32{0}
		require.NoError(t, optim.Apply(optim.AdamW{LR: 1, Beta2: beta2}, 1, p, []float32{3}, m, v))
		require.InDelta(t, -1, p[0], 1e-6, "beta2 %v", beta2)
	}
}

func TestSGD(t *testing.T) {
	for _, tc := range []struct {
		h    optim.SGD
		want []float64 // after each of the gradients 1, 2, -1 on a parameter 1
	}{
		{optim.SGD{LR: .1}, []float64{.9, .7, .8}},
		{optim.SGD{LR: .1, Decay: .5}, []float64{.85, .6075, .677125}},
		{optim.SGD{LR: .1, Momentum: .5}, []float64{.9, .65, .625}},
		{optim.SGD{LR: .1, Momentum: .5, Nesterov: true}, []float64{.85, .525, .6125}},
	} {
		p, m := []float64{1}, []float64{0}
		for i, g := range []float64{1, 2, -1} {
			require.NoError(t, optim.ApplySGD(tc.h, p, []float64{g}, m))
			require.InDelta(t, tc.want[i], p[0], 1e-12, "%+v step %d", tc.h, i+1)
		}
	}
	p := []float32{1}
	require.NoError(t, optim.ApplySGD(optim.SGD{LR: .5}, p, []float32{1}, nil))
	require.Equal(t, []float32{.5}, p)
}

// A parameter that is cut into pieces gets the same bits, and the bits are those of every machine.
func TestBits(t *testing.T) {
	const n, golden = 1001, "3c68c0b7dc70beb6"
	whole, cut := newState(n), newState(n)
	h := optim.AdamW{LR: 3e-4, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1}
	s := optim.SGD{LR: 1e-3, Momentum: .9, Decay: .01, Nesterov: true}
	for step := 1; step <= 20; step++ {
		h.LR = optim.Cosine(step, 3, 15, 3e-4, 1e-5)
		require.NoError(t, whole.apply(h, s, step, 0, n))
		for lo := 0; lo < n; lo += 97 {
			require.NoError(t, cut.apply(h, s, step, lo, min(lo+97, n)))
		}
	}
	require.Equal(t, whole.p, cut.p)
	require.Equal(t, golden, fmt.Sprintf("%x", ddp.Hash(whole.p)))
}

type state struct{ p, g, m, v, b []float32 }

func newState(n int) *state {
	r := rand.New(rand.NewPCG(1, 2))
	s := &state{m: make([]float32, n), v: make([]float32, n), b: make([]float32, n)}
	for range n {
		s.p, s.g = append(s.p, float32(r.Float64()-.5)), append(s.g, float32(r.Float64()-.5))
	}
	return s
}

func (s *state) apply(h optim.AdamW, d optim.SGD, step, lo, hi int) error {
	if err := optim.Apply(h, step, s.p[lo:hi], s.g[lo:hi], s.m[lo:hi], s.v[lo:hi]); err != nil {
		return err
	}
	return optim.ApplySGD(d, s.p[lo:hi], s.g[lo:hi], s.b[lo:hi])
}

func TestNothingIsAllocated(t *testing.T) {
	s := newState(100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		require.NoError(t, s.apply(optim.AdamW{Beta1: .9, Beta2: .9}, optim.SGD{Momentum: .5}, 3, 0, 100))
	}))
}

func TestBadInput(t *testing.T) {
	x, y := []float32{1}, []float32{1, 2}
	require.EqualError(t, optim.Apply(optim.AdamW{}, 0, x, x, x, x), "optim: step 0; steps are counted from 1")
	require.EqualError(t, optim.Apply(optim.AdamW{}, 1, x, y, x, x), "optim: 1 parameters, but 2 gradients, and state of 1 and 1")
	require.EqualError(t, optim.Apply(optim.AdamW{}, 1, x, x, x, nil), "optim: 1 parameters, but 1 gradients, and state of 1 and 0")
	require.EqualError(t, optim.ApplySGD(optim.SGD{Momentum: 1}, x, x, nil), "optim: 1 parameters, but 1 gradients, and state of 0")
	require.EqualError(t, optim.ApplySGD(optim.SGD{}, x, y, nil), "optim: 1 parameters, but 2 gradients, and state of 0")
	for _, h := range []optim.AdamW{{Beta1: 1}, {Beta2: 1.5}, {Beta1: -.1}, {Eps: -1}, {Beta2: math.NaN()}} {
		require.ErrorContains(t, optim.Apply(h, 1, x, x, x, x), "optim: AdamW with Beta1", "%+v", h)
	}
	require.Equal(t, []float32{1}, x)
}

func TestCosine(t *testing.T) {
	for step, want := range map[int]float64{-1: 0, 0: 0, 5: .5, 10: 1, 60: .55, 35: .1 + .9*(.5+.5*math.Cos(math.Pi/4)), 110: .1, 200: .1} {
		require.InDelta(t, want, optim.Cosine(step, 10, 110, 1, .1), 1e-15, "step %d", step)
	}
	require.Equal(t, 1.0, optim.Cosine(0, -1, 10, 1, 0))
	for i := range 1001 {
		x := float64(i) / 1000
		require.InDelta(t, .5+.5*math.Cos(math.Pi*x), optim.Cosine(i, 0, 1000, 1, 0), 2e-15, "%v", x)
	}
}

// PyTorch's clip_grad_norm_: the norm gets 1e-6 more, and what is below stays as it is, to the bit.
func TestClipFactor(t *testing.T) {
	for _, tc := range [][3]float64{{2, 4, 1}, {4, 4, 4 / (4 + 1e-6)}, {8, 2, 2 / (8 + 1e-6)}, {0, 1, 1}, {0, 1e-7, .1}, {3, 0, 0}} {
		require.InDelta(t, tc[2], optim.ClipFactor(tc[0], tc[1]), 1e-16)
	}
	for _, norm := range []float64{6.7, 3.35} { // whose product is not rounded where arm64 fuses it with the addition
		require.Equal(t, map[float64]float64{6.7: .7462680997999255, 3.35: 1}[norm], optim.ClipFactor(norm*.2, 1))
	}
}
