// Package optim has optimizers on slices, as torch.optim has them on tensors: AdamW, also with state
// of 8 bits, Adam, NAdam, Lion, RMSprop, Adagrad and SGD, and schedules of the learning rate. They
// are elementwise, so they can be applied to any part of a parameter: to the pieces of which package
// zero makes shards, or to whole parameters.
//
//	err := m.Step(ctx, func(p zero.Piece, w, g []float32) error {
//		n := p.At + len(w)
//		return optim.Apply(h, step, w, g, avg[p.Unit][p.At:n], sq[p.Unit][p.At:n])
//	})
//
// The arithmetic is that of the element type, in one order and without fused multiply-add, so the bits are the same on
// every machine. Nothing is allocated. Parameters that are not to decay (norms, biases) get a copy of the options with
// Decay 0.
//
// Package whole has the optimizers whose step depends on all of a tensor: LAMB, Adafactor and Muon. Its Optimizer
// applies them, and AdamW, to the parts that zero cuts tensors into.
package optim

import (
	"fmt"
	"math"
)

// Float is what parameters and state are kept in.
type Float interface{ ~float32 | ~float64 }

// Zero says 0 in a field whose 0 stands for a usual value, as AdamW{Beta1: Zero} is Adam without
// momentum. It is the least number above 0, so max(lr, Zero) is a learning rate that may end at 0.
const Zero = math.SmallestNonzeroFloat64

// or is x, or what 0 stands for.
func or(x, usual float64) float64 {
	switch x {
	case 0:
		return usual
	case Zero:
		return 0
	}
	return x
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), as torch.optim.AdamW.
type AdamW struct {
	// LR is the learning rate of this step.
	LR float64
	// Beta1 and Beta2 are how much of the averages of gradients and of their squares is kept: from 0 to 1, and less than
	// 1; 0 is .9 and .999, and Zero is 0.
	Beta1, Beta2 float64
	// Eps is added to the square root; 0 is 1e-8. Zero is 0, with which a parameter becomes NaN whose
	// gradients have all been 0.
	Eps float64
	// Decay is the weight decay, times LR.
	Decay float64
}

// Apply makes step number step, counted from 1, on the parameters p with the gradients g. m and v
// are the state, zero at first. All have one length; else Apply changes nothing and returns an
// error.
func Apply[T Float](h AdamW, step int, p, g, m, v []T) error {
	n := len(p)
	f, err := h.Factors(step)
	switch {
	case err != nil:
		return err
	case len(g) != n || len(m) != n || len(v) != n:
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d and %d", n, len(g), len(m), len(v))
	}
	b1, a1, b2, a2, eps := T(f.Beta1), T(f.Alpha1), T(f.Beta2), T(f.Alpha2), T(f.Eps)
	rate, root, keep := T(f.Rate), T(f.Root), T(f.Keep)
	g, m, v = g[:n], m[:n], v[:n]
	for i := range p {
		// Each product is converted, so that no compiler fuses it with an addition.
		mi := T(b1*m[i]) + T(a1*g[i])
		vi := T(b2*v[i]) + T(T(a2*g[i])*g[i])
		m[i], v[i] = mi, vi
		d := T(T(math.Sqrt(float64(vi)))*root) + eps
		p[i] = T(p[i]*keep) - T(rate*mi)/d
	}
	return nil
}

// Factors are the numbers of a step by which Apply multiplies, each to be rounded to the type of
// the elements: for code that does what Apply does elsewhere, as package device on a GPU. With m =
// Beta1*m + Alpha1*g and v = Beta2*v + (Alpha2*g)*g the parameter becomes p*Keep - Rate*m /
// (sqrt(v)*Root + Eps), each operation rounded.
type Factors struct{ Beta1, Alpha1, Beta2, Alpha2, Rate, Root, Keep, Eps float64 }

// Factors returns those of step number step, counted from 1.
func (h AdamW) Factors(step int) (Factors, error) {
	h.Beta1, h.Beta2, h.Eps = or(h.Beta1, .9), or(h.Beta2, .999), or(h.Eps, 1e-8)
	switch {
	case step < 1:
		return Factors{}, fmt.Errorf("optim: step %d; steps are counted from 1", step)
	case !(h.Beta1 >= 0 && h.Beta1 < 1 && h.Beta2 >= 0 && h.Beta2 < 1 && h.Eps >= 0):
		return Factors{}, fmt.Errorf("optim: AdamW with Beta1 %v, Beta2 %v, Eps %v: the betas are from 0 to 1 and less than 1, Eps is not negative", h.Beta1, h.Beta2, h.Eps)
	}
	return Factors{
		Beta1: h.Beta1, Alpha1: 1 - h.Beta1,
		// not of the rounded Beta2: of .9999 in float32 that is off by 2e-4, and Root is not
		Beta2: h.Beta2, Alpha2: 1 - h.Beta2,
		Rate: h.LR / (1 - power(h.Beta1, step)),
		Root: 1 / math.Sqrt(1-power(h.Beta2, step)),
		Keep: 1 - float64(h.LR*h.Decay),
		Eps:  h.Eps,
	}, nil
}

// SGD is stochastic gradient descent with momentum (Sutskever et al. 2013), as torch.optim.SGD with dampening 0.
type SGD struct {
	// LR is the learning rate of this step.
	LR float64
	// Momentum is how much of the last step's direction is kept.
	Momentum float64
	// Decay is added to the gradient, times the parameter.
	Decay float64
	// Nesterov looks ahead by the momentum.
	Nesterov bool
}

// ApplySGD makes a step on the parameters p with the gradients g. m is the state, zero at first; it may be nil where
// Momentum is 0. All have one length; else ApplySGD changes nothing and returns an error.
func ApplySGD[T Float](h SGD, p, g, m []T) error {
	n := len(p)
	if len(g) != n || len(m) != n && (h.Momentum != 0 || m != nil) {
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d", n, len(g), len(m))
	}
	rate, mu, decay := T(h.LR), T(h.Momentum), T(h.Decay)
	for i := range p {
		d := g[i]
		if decay != 0 {
			d += T(decay * p[i])
		}
		if mu != 0 {
			m[i] = T(mu*m[i]) + d
			if h.Nesterov {
				d += T(mu * m[i])
			} else {
				d = m[i]
			}
		}
		p[i] -= T(rate * d)
	}
	return nil
}

// power is b to the n. math.Pow may be fused on some machines.
func power(b float64, n int) float64 {
	x := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			x *= b
		}
		b *= b
	}
	return x
}
