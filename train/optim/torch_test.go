package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
)

// stepper is an optimizer whose state are vectors as long as the parameters.
type stepper[T optim.Float] func(step int, p, g []T, state [][]T) error

// asTorch are the optimizers that reference.py has by torch's formulas, with how many vectors of state each has.
func asTorch[T optim.Float]() map[string]struct {
	state int
	apply stepper[T]
} {
	type row = struct {
		state int
		apply stepper[T]
	}
	return map[string]row{
		"adam": {2, func(step int, p, g []T, s [][]T) error {
			return optim.ApplyAdam(optim.Adam{LR: .01, Decay: .1}, step, p, g, s[0], s[1])
		}},
		"nadam": {2, func(step int, p, g []T, s [][]T) error {
			f, err := optim.NAdam{LR: .01, Decay: .1}.Factors(step)
			if err != nil {
				return err
			}
			return optim.ApplyMomentum(f, p, g, s[0], s[1])
		}},
		"rmsprop": {1, func(_ int, p, g []T, s [][]T) error {
			return optim.ApplyRMSprop(optim.RMSprop{LR: .01, Decay: .1}, p, g, s[0], nil, nil)
		}},
		"rmsprop centered momentum": {3, func(_ int, p, g []T, s [][]T) error {
			return optim.ApplyRMSprop(optim.RMSprop{LR: .01, Decay: .1, Momentum: .9, Centered: true}, p, g, s[0], s[1], s[2])
		}},
		"adagrad": {1, func(step int, p, g []T, s [][]T) error {
			if step == 1 {
				for i := range s[0] {
					s[0][i] = .5
				}
			}
			return optim.ApplyAdagrad(optim.Adagrad{LR: .01 / (1 + float64(step-1)*.2), Decay: .1}, p, g, s[0])
		}},
	}
}

func vectors[T optim.Float](count, n int) [][]T {
	all := make([][]T, count)
	for i := range all {
		all[i] = make([]T, n)
	}
	return all
}

func TestAsTorch(t *testing.T) {
	for name, o := range asTorch[float64]() {
		p, s := numbers(1, 15), vectors[float64](o.state, 15)
		for step := 1; step <= 4; step++ {
			require.NoError(t, o.apply(step, p, numbers(1000+step, 15), s))
		}
		require.InDeltaSlice(t, reference(t)[name], p, 1e-15, name)
	}
}

// A parameter that is cut into pieces gets the same bits, and a step takes no memory.
func TestAsTorchCut(t *testing.T) {
	const n = 1001
	for name, o := range asTorch[float32]() {
		whole, cut := newState(n), newState(n)
		sw, sc := vectors[float32](o.state, n), vectors[float32](o.state, n)
		for step := 1; step <= 20; step++ {
			require.NoError(t, o.apply(step, whole.p, whole.g, sw))
			for lo := 0; lo < n; lo += 97 {
				hi := min(lo+97, n)
				part := make([][]float32, o.state)
				for i := range part {
					part[i] = sc[i][lo:hi]
				}
				require.NoError(t, o.apply(step, cut.p[lo:hi], cut.g[lo:hi], part))
			}
		}
		require.Equal(t, whole.p, cut.p, name)
		require.Zero(t, testing.AllocsPerRun(10, func() { require.NoError(t, o.apply(21, whole.p, whole.g, sw)) }), name)
	}
}

// Beta1 0, where gradients are sparse, is said by Zero; NAdam's momentum is Beta1 where it does not decay.
func TestNAdamWithoutDecayOfMomentum(t *testing.T) {
	f, err := optim.NAdam{LR: 1, Beta1: .5, MomentumDecay: optim.Zero}.Factors(2)
	require.NoError(t, err)
	require.InDelta(t, .25/(1-.25*.25*.25), f.Rate, 1e-15) // the momentum is .5*(1-.5) at each step
	require.InDelta(t, .75/(1-.25*.25), f.Ahead, 1e-15)
	f, err = optim.NAdam{LR: 1, Beta1: .82, MomentumDecay: optim.Zero}.Factors(1)
	require.NoError(t, err)
	require.Equal(t, .4928476980406298, f.Rate)                // fused on arm64 it would be .4928476980406299
	f, err = optim.NAdam{LR: 1, MomentumDecay: 1e6}.Factors(1) // which is .9 at once
	require.NoError(t, err)
	require.InDelta(t, 1, f.Ahead, 1e-15)
}

func TestAsTorchBadInput(t *testing.T) {
	one, two := []float32{1}, []float32{1, 2}
	for want, err := range map[string]error{
		"optim: step 0; steps are counted from 1": optim.ApplyAdam(optim.Adam{}, 0, one, one, one, one),
		"optim: 1 parameters, but 2 gradients, and state of 1 and 1": optim.ApplyAdam(optim.Adam{}, 1, one, two, one,
			one),
		"optim: 1 parameters, but 1 gradients, and state of 1, 0 and 0": optim.ApplyRMSprop(optim.RMSprop{Momentum: .9}, one,
			one, one, nil, nil),
		"optim: 1 parameters, but 1 gradients, and state of 1, 0 and 2": optim.ApplyRMSprop(optim.RMSprop{}, one, one, one,
			nil, two),
		"optim: RMSprop with Alpha 1, Eps 1e-08: Alpha is from 0 to 1 and less than 1, Eps is not negative": optim.ApplyRMSprop(
			optim.RMSprop{Alpha: 1}, one, one, one, nil, nil),
		"optim: Adagrad with Eps -1; it is not negative":       optim.ApplyAdagrad(optim.Adagrad{Eps: -1}, one, one, one),
		"optim: 1 parameters, but 1 gradients, and state of 2": optim.ApplyAdagrad(optim.Adagrad{}, one, one, two),
	} {
		require.EqualError(t, err, want)
	}
	_, err := optim.NAdam{MomentumDecay: -1}.Factors(1)
	require.EqualError(t, err, "optim: NAdam with MomentumDecay -1; it is finite and not negative")
	_, err = optim.NAdam{MomentumDecay: math.Inf(1)}.Factors(1)
	require.EqualError(t, err, "optim: NAdam with MomentumDecay +Inf; it is finite and not negative")
	_, err = optim.NAdam{MomentumDecay: math.NaN()}.Factors(1)
	require.EqualError(t, err, "optim: NAdam with MomentumDecay NaN; it is finite and not negative")
	_, err = optim.NAdam{}.Factors(0)
	require.EqualError(t, err, "optim: step 0; steps are counted from 1")
}

func TestPlateau(t *testing.T) {
	p := &optim.Plateau{Factor: .5, Patience: 2, Threshold: 1e-2, Cooldown: 1, Floor: .1}
	rate, got := 1., []float64(nil)
	for s := range 60 {
		loss := 1 + 10/float64(s+1)
		if s >= 30 {
			loss = 1.5 + .1*float64((s-30)%7)
		}
		var err error
		rate, err = p.Next(rate, loss)
		require.NoError(t, err)
		got = append(got, rate)
		again := *p // all of its state, as a checkpoint has it
		p = &again
	}
	require.InDeltaSlice(t, reference(t)["plateau"], got, 1e-15)
	require.Equal(t, .1, rate)
	q := &optim.Plateau{Patience: 10}
	for range 10 {
		_, err := q.Next(1, math.NaN())
		require.NoError(t, err)
	}
	require.Equal(t, optim.Plateau{Patience: 10, Bad: 10}, *q)
	rate, err := q.Next(1, math.Inf(1)) // as torch, which is no better than nothing
	require.NoError(t, err)
	require.Equal(t, .1, rate)
	require.Equal(t, optim.Plateau{Patience: 10}, *q)
	_, err = q.Next(1, math.Inf(-1)) // than which nothing would be better
	require.NoError(t, err)
	require.Equal(t, optim.Plateau{Patience: 10, Bad: 1}, *q)
	_, err = (&optim.Plateau{Factor: 1}).Next(1, 1)
	require.EqualError(t, err, "optim: Plateau with Factor 1, Threshold 0.0001, Floor 0: Factor is from 0 to 1 and neither, Threshold is not negative, Floor is a number")
	_, err = (&optim.Plateau{Floor: math.NaN()}).Next(1, 1)
	require.ErrorContains(t, err, "Floor NaN: ")
}

func TestOneCycle(t *testing.T) {
	var got []float64
	for s := 1; s <= 120; s++ {
		got = append(got, optim.OneCycle(s, 30, 100, .08, 2, .001))
	}
	require.InDeltaSlice(t, reference(t)["one cycle"], got, 1e-14)
	for _, rise := range []int{-1, 0, 1, 100, 200} {
		for s := -3; s < 110; s++ {
			rate := optim.OneCycle(s, rise, 100, .08, 2, .001)
			require.GreaterOrEqual(t, rate, .001)
			require.LessOrEqual(t, rate, 2.)
		}
	}
}

// However late a step is, and however large the periods become, a rate comes, and soon.
func TestRestartsFar(t *testing.T) {
	const far = math.MaxInt
	require.Equal(t, 2., optim.Restarts(far, 0, 1, 1, 2, 0))
	require.Equal(t, 1., optim.Restarts(3+1e18, 0, 4, 1, 2, 0)) // half of a period of four
	require.Equal(t, 0., optim.Restarts(far, 0, 1, 2, 2, 0))    // the end of a period of 2^62
	require.Equal(t, 2., optim.Restarts(11, 0, 10, far, 2, 0))
	require.InDelta(t, 1, optim.Restarts(1<<30+1<<61+1, 0, 1<<30, 1<<32, 2, 0), 1e-9)
	require.InDelta(t, 2, optim.Restarts(1<<31, 0, 1<<30, 1<<40, 2, 0), 1e-9)
}
