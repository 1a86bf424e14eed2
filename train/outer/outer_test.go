package outer_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/quant"
)

// model is units of parameters, whose loss is half of the squared distance from a point of the rank's own.
type model struct {
	units [][]float32
	rank  int
}

func newModel(rank int, lens ...int) *model {
	m, r := &model{rank: rank}, rand.New(rand.NewPCG(3, 4))
	for _, n := range lens {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		m.units = append(m.units, x)
	}
	return m
}

// grad is the gradient of element i of a unit in a step, and has noise of the step in it.
func (m *model) grad(step, unit, i int, x float32) float32 {
	return x - float32((i*7+unit*5+m.rank*3)%11-5)/5 + float32((step*13+i*3+m.rank)%7-3)/10
}

func (m *model) step(step int) {
	for u, x := range m.units {
		for i := range x {
			x[i] -= float32(.05 * m.grad(step, u, i, x[i]))
		}
	}
}

// advance is a Step of u that does not fail.
func advance(t testing.TB, u *outer.Outer) {
	t.Helper()
	_, err := u.Step(t.Context())
	require.NoError(t, err)
}

// Whatever the options are, all ranks have the same bits of the outer parameters after each round, and Flush leaves nothing under way.
func TestBits(t *testing.T) {
	for seed := range uint64(ccltestTrials(t)) {
		r := rand.New(rand.NewPCG(seed, 9))
		ranks, h := 2+r.IntN(4), 1+r.IntN(8)
		o := &outer.Options{Every: h, Fragments: 1 + r.IntN(min(h, 4)), Delay: r.IntN(h + 1), Stride: r.IntN(2) == 0, Codec: quant.Codec(r.IntN(4))}
		switch r.IntN(4) {
		case 0:
			o.Mean = true
		case 1:
			o.LR, o.Momentum = r.Float64(), r.Float64()*.9
		}
		if o.Eager = o.Delay > 0 && r.IntN(3) == 0; !o.Eager {
			o.Mix = float32(r.IntN(3)) / 2
		}
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), 300, 1, 77, 500)
			u := begun(t, c, m, o)
			done := 0
			for step := 1; step <= 3*h+5; step++ {
				m.step(step)
				_, err := u.Step(t.Context())
				require.NoError(t, err, "seed %d: %+v", seed, *o)
				if n := u.Stats().Rounds; n > done {
					done = n
					require.NoError(t, u.Same(t.Context()), "seed %d: %+v", seed, *o)
				}
			}
			require.Greater(t, done, 0)
			_, err := u.Flush(t.Context())
			require.NoError(t, err)
			require.NoError(t, u.Same(t.Context()), "seed %d: %+v", seed, *o)
			moved, err := u.Flush(t.Context())
			require.NoError(t, err)
			require.False(t, moved)
			require.NoError(t, u.Close())
		}, ccltest.Hosts(1+int(seed)%2))
	}
}

func ccltestTrials(t *testing.T) int {
	if testing.Short() {
		return 40
	}
	return 400
}

// begun is an Outer of m on c.
func begun(t testing.TB, c *ccl.Comm, m *model, o *outer.Options) *outer.Outer {
	u, err := outer.New(m.units, o)
	require.NoError(t, err)
	require.NoError(t, u.On(t.Context(), c))
	return u
}

// With one inner step, no fragments, no delay and the mean, it is ddp.
func TestIsDDP(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m, d := newModel(c.Rank(), 50, 30), newModel(c.Rank(), 50, 30)
		u := begun(t, c, m, &outer.Options{Every: 1, Mean: true})
		grads := [][]float32{make([]float32, 50), make([]float32, 30)}
		red, err := ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(grads[0]), ccl.BufOf(grads[1])}, nil)
		require.NoError(t, err)
		for step := range 100 {
			m.step(step)
			moved, err := u.Step(t.Context())
			require.NoError(t, err)
			require.True(t, moved)
			for k, g := range grads {
				for i := range g {
					g[i] = d.grad(step, k, i, d.units[k][i])
				}
			}
			require.NoError(t, red.All(t.Context()))
			for k, g := range grads {
				require.NoError(t, optim.ApplySGD(optim.SGD{LR: .05}, d.units[k], g, nil))
				require.InDeltaSlice(t, d.units[k], m.units[k], 1e-6)
				require.Equal(t, u.Params()[k], m.units[k])
			}
		}
		require.NoError(t, red.Close())
	})
}

// reference is the algorithm in float64, for one parameter of each of n ranks and one fragment, step by step.
type reference struct {
	o               outer.Options
	outer, moment   float64
	due, step       int
	known           bool      // there was an exchange
	local, delta    []float64 // by rank, as all below
	others, guesses []float64
}

func (r *reference) after() {
	n := float64(len(r.local))
	r.step++
	if r.due != 0 && r.due <= r.step {
		r.finish(n)
	}
	if r.step%r.o.Every == 0 {
		for i, x := range r.local {
			r.delta[i] = r.outer - x
			if r.o.Eager {
				g := r.others[i] + r.delta[i]/n
				if !r.known {
					g = r.delta[i]
				}
				m := .9*r.moment + g
				r.guesses[i] = r.outer - .7*(g+.9*m)
				r.local[i] = r.guesses[i]
			}
		}
		if r.due = r.step + r.o.Delay; r.o.Delay == 0 {
			r.finish(n)
		}
	}
}

func (r *reference) finish(n float64) {
	mean := 0.
	for _, d := range r.delta {
		mean += d / n
	}
	if r.o.Mean {
		r.outer -= mean
	} else {
		r.moment = .9*r.moment + mean
		r.outer -= .7 * (mean + .9*r.moment)
	}
	for i := range r.local {
		a := float64(r.o.Mix)
		if r.o.Eager {
			r.local[i] += r.outer - r.guesses[i]
			r.others[i] = mean - r.delta[i]/n
		} else {
			r.local[i] = a*r.local[i] + (1-a)*r.outer
		}
	}
	r.known, r.due = true, 0
}

// Inner and outer parameters are those of the papers' algorithms.
func TestAlgorithm(t *testing.T) {
	const ranks = 3
	for _, o := range []outer.Options{{Every: 4}, {Every: 3, Mean: true}, {Every: 5, Delay: 2, Mix: .5}, {Every: 4, Delay: 4}, {Every: 5, Delay: 3, Eager: true}, {Every: 2, Mix: 1}} {
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), 1)
			u := begun(t, c, m, &o)
			ref := &reference{o: o, outer: float64(m.units[0][0]), delta: make([]float64, ranks), others: make([]float64, ranks), guesses: make([]float64, ranks)}
			for range ranks {
				ref.local = append(ref.local, float64(m.units[0][0]))
			}
			for step := range 40 {
				for r := range ref.local {
					ref.local[r] -= .05 * float64((&model{rank: r}).grad(step, 0, 0, float32(ref.local[r])))
				}
				ref.after()
				m.step(step)
				advance(t, u)
				require.InDelta(t, ref.local[c.Rank()], m.units[0][0], 1e-4, "step %d of %+v", step, o)
				require.InDelta(t, ref.outer, u.Params()[0][0], 1e-4, "step %d of %+v", step, o)
			}
		})
	}
}

// Fragments take their turns, and send what the codec takes: in H steps as much as all parameters once.
func TestFragments(t *testing.T) {
	const ranks, n = 4, 6400
	for _, stride := range []bool{false, true} {
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), n/4, n/4, n/4, n/4)
			u := begun(t, c, m, &outer.Options{Every: 8, Fragments: 2, Codec: quant.Int4, Stride: stride})
			was := slices.Clone(u.Params()[0])
			for step := 1; step <= 8+8; step++ {
				m.step(step)
				moved, err := u.Step(t.Context())
				require.NoError(t, err)
				require.Equal(t, step >= 8 && step%4 == 0, moved, "step %d", step)
				if step == 8 { // the first fragment alone
					require.NotEqual(t, was, u.Params()[0])
					other := 2
					if stride {
						other = 1
					}
					require.Equal(t, newModel(0, n/4, n/4, n/4, n/4).units[other], u.Params()[other])
				}
			}
			s := u.Stats()
			require.Equal(t, 3, s.Rounds)
			blocks := (n/2/ranks + 63) / 64 // of a shard of a fragment
			require.EqualValues(t, 3*(2*(ranks-1)*blocks*36+(ranks-1)*8), s.Bytes)
		})
	}
}

// A difference that is not finite, on one rank, is the same error on all, and leaves the outer parameters as they were.
func TestNotFinite(t *testing.T) {
	for k := quant.None; k <= quant.Int4; k++ {
		for _, delay := range []int{0, 1} {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := newModel(c.Rank(), 1000)
				u := begun(t, c, m, &outer.Options{Every: 2, Codec: k, Delay: delay})
				step := func() error {
					m.step(1)
					_, err := u.Step(t.Context())
					return err
				}
				require.NoError(t, step())
				if c.Rank() == 2 {
					m.units[0][777] = float32(math.Inf(1))
				}
				err := step()
				if delay == 1 {
					require.NoError(t, err)
					err = step()
				}
				require.ErrorIs(t, err, outer.ErrNotFinite)
				require.Equal(t, newModel(0, 1000).units, u.Params())
				u.Restart()
				for range 4 {
					require.NoError(t, step())
				}
				require.NoError(t, u.Same(t.Context()))
				require.NotZero(t, u.Stats().Rounds)
			})
		}
	}
}

// Bits that have changed on one rank are told on all, by the exchange that follows.
func TestOtherBits(t *testing.T) {
	for k := quant.None; k <= quant.Int4; k++ {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), 1000)
			u := begun(t, c, m, &outer.Options{Every: 1, Codec: k})
			advance(t, u)
			if c.Rank() == 1 {
				u.Moments()[0][5]++
			}
			require.ErrorContains(t, u.Same(t.Context()), "ranks [1] of 3 hold different bits")
			_, err := u.Step(t.Context())
			require.EqualError(t, err, "outer: exchange 2: ranks [1] of 3 hold other bits of the outer parameters than the rest")
		})
	}
}

// What 0 is in LR and Momentum, by the first outer step of a rank that has gone from 0 to 1.
func TestUsualStep(t *testing.T) {
	for _, tc := range []struct {
		o    outer.Options
		want float64
	}{
		{outer.Options{}, .7 * (1 + .9)},
		{outer.Options{Momentum: .5}, .7 * (1 + .5)},
		{outer.Options{LR: .5}, .5},
		{outer.Options{LR: .5, Momentum: .5}, .5 * (1 + .5)},
		{outer.Options{Mean: true}, 1},
	} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			x := []float32{0}
			tc.o.Every = 1
			u := begun(t, c, &model{units: [][]float32{x}}, &tc.o)
			x[0] = 1
			advance(t, u)
			require.InDelta(t, tc.want, x[0], 1e-6, "%+v", tc.o)
		})
	}
}

func TestMisuse(t *testing.T) {
	for _, tc := range []struct {
		o    *outer.Options
		want string
	}{
		{nil, "outer: Every is 0 inner steps; give at least 1"},
		{&outer.Options{Every: 2, Fragments: 3}, "outer: 3 Fragments do not fit 2 inner steps: there is at most one a step"},
		{&outer.Options{Every: 5, Fragments: 3, Stride: true}, "outer: 3 Fragments of 2 units, with Stride: give at most as many as there are units"},
		{&outer.Options{Every: 5, Delay: 6}, "outer: a Delay of 6 inner steps; it is from 0 to Every, which is 5"},
		{&outer.Options{Every: 5, Mix: 2}, "outer: Mix is 2; it is from 0 to 1"},
		{&outer.Options{Every: 5, Mix: float32(math.NaN())}, "outer: Mix is NaN; it is from 0 to 1"},
		{&outer.Options{Every: 5, Eager: true}, "outer: Eager with a Delay of 0 and Mix of 0: it takes a Delay, and no Mix"},
		{&outer.Options{Every: 5, Momentum: 1}, "outer: LR 0 and Momentum 1: neither may be negative, and Momentum is less than 1"},
		{&outer.Options{Every: 5, LR: 1, Mean: true}, "outer: Mean has no LR and no Momentum"},
		{&outer.Options{Every: 5, Codec: 7}, "outer: Codec(7) is no codec"},
		{&outer.Options{Every: 5, Piece: -1}, "outer: Piece is -1 bytes"},
	} {
		_, err := outer.New(newModel(0, 3, 4).units, tc.o)
		require.EqualError(t, err, tc.want)
	}
	u, err := outer.New(newModel(0, 3).units, &outer.Options{Every: 1})
	require.NoError(t, err)
	_, err = u.Step(t.Context())
	require.EqualError(t, err, "outer: there is no Comm yet: call On")
	require.EqualError(t, u.On(t.Context(), nil), "outer: the Comm is nil")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		u, err := outer.New(newModel(0, 3, 5+c.Rank()).units, &outer.Options{Every: 1})
		require.NoError(t, err)
		require.EqualError(t, u.On(t.Context(), c), "outer: ranks differ: rank 0 has unit 1 with 5 elements, rank 1 has unit 1 with 6 elements")
		u = begun(t, c, newModel(0, 3), &outer.Options{Every: 2 /* so that a Step sends nothing */})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a test"))
		_, err = u.Step(ctx)
		require.NoError(t, err)
	})
}
