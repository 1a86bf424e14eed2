package optim

import (
	"fmt"
	"math"
)

// Adam is Adam whose weight decay is part of the gradient (Kingma and Ba 2015), as torch.optim.Adam. AdamW is better
// wherever there is decay; this is for runs that are to repeat others.
type Adam struct {
	// LR, Beta1, Beta2 and Eps are those of AdamW.
	LR, Beta1, Beta2, Eps float64
	// Decay is added to the gradient, times the parameter.
	Decay float64
}

// ApplyAdam makes step number step, counted from 1, on the parameters p with the gradients g. m and
// v are the state, zero at first. All have one length; else ApplyAdam changes nothing and returns an
// error.
func ApplyAdam[T Float](h Adam, step int, p, g, m, v []T) error {
	f, err := AdamW{LR: h.LR, Beta1: h.Beta1, Beta2: h.Beta2, Eps: h.Eps}.Factors(step)
	if err != nil {
		return err
	}
	return ApplyMomentum(MomentumFactors{Factors: f, Decay: h.Decay}, p, g, m, v)
}

// NAdam is Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam.
type NAdam struct {
	// LR, Beta1, Beta2 and Eps are those of AdamW.
	LR, Beta1, Beta2, Eps float64
	// MomentumDecay is how fast the momentum rises to Beta1: 0 is .004, and Zero is 0.
	MomentumDecay float64
	// Decay is added to the gradient, times the parameter.
	Decay float64
}

// MomentumFactors are the numbers of a step of Adam or NAdam. With d = g + Decay*p the averages are
// m = Beta1*m + Alpha1*d and v = Beta2*v + (Alpha2*d)*d, and the parameter becomes
// p - (Rate*m + Ahead*d) / (sqrt(v)*Root + Eps), each operation rounded.
type MomentumFactors struct {
	Factors
	Ahead, Decay float64
}

// Factors returns those of step number step, counted from 1. It multiplies step times: call it once
// a step, and not for each part of a parameter.
func (h NAdam) Factors(step int) (MomentumFactors, error) {
	f, err := AdamW{LR: h.LR, Beta1: h.Beta1, Beta2: h.Beta2, Eps: h.Eps}.Factors(step)
	if err != nil {
		return MomentumFactors{}, err
	}
	psi := or(h.MomentumDecay, .004)
	if !(psi >= 0 && psi <= math.MaxFloat64) {
		return MomentumFactors{}, fmt.Errorf("optim: NAdam with MomentumDecay %v; it is finite and not negative", psi)
	}
	r, rt, product, now, next := decays(psi), 1.0, 1.0, 0.0, 0.0
	for range step {
		rt *= r
		now = f.Beta1 * (1 - float64(0.5*rt))
		product *= now
	}
	next = f.Beta1 * (1 - float64(0.5*float64(rt*r)))
	f.Rate = h.LR * next / (1 - float64(product*next))
	return MomentumFactors{Factors: f, Ahead: h.LR * (1 - now) / (1 - product), Decay: h.Decay}, nil
}

// decays is .96 to the x, by its series: math.Pow may be fused on some machines.
func decays(x float64) float64 {
	x *= -0.040821994520255166 // the logarithm of .96
	halves := 0
	for ; x < -.5; halves++ {
		x /= 2
	}
	sum, term := 1.0, 1.0
	for k := 1; k < 20; k++ {
		term = term * x / float64(k)
		sum += float64(term)
	}
	for range halves {
		sum *= sum
	}
	return sum
}

// ApplyMomentum makes the step that f is of, on the parameters p with the gradients g. m and v are
// the state, zero at first. All have one length; else it changes nothing and returns an error.
func ApplyMomentum[T Float](f MomentumFactors, p, g, m, v []T) error {
	n := len(p)
	if len(g) != n || len(m) != n || len(v) != n {
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d and %d", n, len(g), len(m), len(v))
	}
	b1, a1, b2, a2, eps := T(f.Beta1), T(f.Alpha1), T(f.Beta2), T(f.Alpha2), T(f.Eps)
	rate, ahead, root, decay := T(f.Rate), T(f.Ahead), T(f.Root), T(f.Decay)
	g, m, v = g[:n], m[:n], v[:n]
	for i := range p {
		d := g[i] + T(decay*p[i])
		mi := T(b1*m[i]) + T(a1*d)
		vi := T(b2*v[i]) + T(T(a2*d)*d)
		m[i], v[i] = mi, vi
		p[i] -= T(T(rate*mi)+T(ahead*d)) / (T(T(math.Sqrt(float64(vi)))*root) + eps)
	}
	return nil
}
