package optim

import (
	"fmt"
	"math"
)

// RMSprop divides by the root of an average of squares (Hinton 2012), as torch.optim.RMSprop.
type RMSprop struct {
	// LR is the learning rate of this step.
	LR float64
	// Alpha is how much of the average of squares is kept: from 0 to 1, and less than 1; 0 is .99, and Zero is 0.
	Alpha float64
	// Eps is added to the root; 0 is 1e-8, and Zero is 0.
	Eps float64
	// Momentum is how much of the last step's direction is kept.
	Momentum float64
	// Decay is added to the gradient, times the parameter.
	Decay float64
	// Centered divides by the root of the variance: of the squares less the square of the average.
	Centered bool
}

// ApplyRMSprop makes a step on the parameters p with the gradients g. v, m and mean are the state,
// zero at first: the squares, the momentum and the average. m may be nil where Momentum is 0, and
// mean unless Centered. All others have one length; else ApplyRMSprop changes nothing and returns an
// error.
func ApplyRMSprop[T Float](h RMSprop, p, g, v, m, mean []T) error {
	n := len(p)
	h.Alpha, h.Eps = or(h.Alpha, .99), or(h.Eps, 1e-8)
	switch {
	case !(h.Alpha >= 0 && h.Alpha < 1 && h.Eps >= 0):
		return fmt.Errorf("optim: RMSprop with Alpha %v, Eps %v: Alpha is from 0 to 1 and less than 1, Eps is not negative",
			h.Alpha, h.Eps)
	case len(g) != n || len(v) != n || len(m) != n && (h.Momentum != 0 || m != nil) ||
		len(mean) != n && (h.Centered || mean != nil):
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d, %d and %d", n, len(g), len(v), len(m),
			len(mean))
	}
	keep, add, eps := T(h.Alpha), T(1-h.Alpha), T(h.Eps)
	rate, mu, decay := T(h.LR), T(h.Momentum), T(h.Decay)
	for i := range p {
		d := g[i] + T(decay*p[i])
		v[i] = T(keep*v[i]) + T(T(add*d)*d)
		square := v[i]
		if h.Centered {
			mean[i] = T(keep*mean[i]) + T(add*d)
			square -= T(mean[i] * mean[i])
		}
		d /= T(math.Sqrt(float64(max(square, 0)))) + eps
		if mu != 0 {
			m[i] = T(mu*m[i]) + d
			d = m[i]
		}
		p[i] -= T(rate * d)
	}
	return nil
}

// Adagrad divides by the root of the sum of squares (Duchi et al. 2011), as torch.optim.Adagrad.
type Adagrad struct {
	// LR is the learning rate of this step; torch's lr_decay d is LR/(1+(step-1)*d).
	LR float64
	// Eps is added to the root; 0 is 1e-10, and Zero is 0.
	Eps float64
	// Decay is added to the gradient, times the parameter.
	Decay float64
}

// ApplyAdagrad makes a step on the parameters p with the gradients g. v is the state, zero at first, or whatever the
// sums are to begin with. All have one length; else ApplyAdagrad changes nothing and returns an error.
func ApplyAdagrad[T Float](h Adagrad, p, g, v []T) error {
	n := len(p)
	h.Eps = or(h.Eps, 1e-10)
	switch {
	case !(h.Eps >= 0):
		return fmt.Errorf("optim: Adagrad with Eps %v; it is not negative", h.Eps)
	case len(g) != n || len(v) != n:
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d", n, len(g), len(v))
	}
	rate, decay, eps := T(h.LR), T(h.Decay), T(h.Eps)
	for i := range p {
		d := g[i] + T(decay*p[i])
		v[i] += T(d * d)
		p[i] -= T(rate*d) / (T(math.Sqrt(float64(v[i]))) + eps)
	}
	return nil
}
