package whole

import (
	"cmp"
	"fmt"
	"math"

	"github.com/goccl/goccl/train/optim"
)

// LAMB is AdamW whose step on each tensor is as long, for LR 1, as the tensor itself (You et al.
// 2020, algorithm 2): for very large batches.
type LAMB struct {
	// LR is the learning rate of this step.
	LR float64
	// Beta1 and Beta2 are as in optim.AdamW; 0 is .9 and .999, and optim.Zero is 0.
	Beta1, Beta2 float64
	// Eps is added to the square root; 0 is 1e-6, as in the paper's code, and optim.Zero is 0.
	Eps float64
	// Decay is the weight decay. It is a part of the step that is made as long as the tensor; for
	// norms and biases it is 0.
	Decay float64
	// Most is the largest length of a tensor that counts; 0: any.
	Most float64
}

// ApplyLAMB makes step number step, counted from 1, on all of t: the parameters p with the gradients g. m and v are the
// state, zero at first. With an error nothing is changed.
func ApplyLAMB[T optim.Float](h LAMB, step int, t Tensor, p, g, m, v []T) error {
	if err := t.check("LAMB", len(p), len(g), len(m), len(v)); err != nil {
		return err
	}
	d, err := lambOf[T](h, step)
	if err != nil {
		return err
	}
	d.apply(d.rate(d.moments(p, g, m, v)), p, m, v)
	return nil
}

// lamb is a LAMB in one step: the factors of the moments, and what the direction has beside these.
type lamb[T optim.Float] struct {
	b1, b2, a1, a2          T
	first, root, eps, decay T
	lr, most                float64
}

func lambOf[T optim.Float](h LAMB, step int) (d lamb[T], err error) {
	f, err := optim.AdamW{LR: 1, Beta1: h.Beta1, Beta2: h.Beta2, Eps: cmp.Or(h.Eps, 1e-6)}.Factors(step)
	if err != nil {
		return d, fmt.Errorf("optim/whole: LAMB: %w", err)
	}
	return lamb[T]{T(f.Beta1), T(f.Beta2), T(f.Alpha1), T(f.Alpha2), T(f.Rate), T(f.Root), T(f.Eps), T(h.Decay), h.LR,
		h.Most}, nil
}

// moments brings g into the averages, and returns the sums of squares of the parameters and of the step's direction.
func (d lamb[T]) moments(p, g, m, v []T) (own, long float64) {
	for i := range p {
		m[i] = T(d.b1*m[i]) + T(d.a1*g[i])
		v[i] = T(d.b2*v[i]) + T(T(d.a2*g[i])*g[i])
		x := float64(d.of(p[i], m[i], v[i]))
		long += float64(x * x)
	}
	return squares(p), long
}

// rate is what the direction is multiplied by, given the sums of squares of the whole tensor.
func (d lamb[T]) rate(own, long float64) T {
	own, long = math.Sqrt(own), math.Sqrt(long)
	if d.most > 0 {
		own = min(own, d.most)
	}
	rate := d.lr
	if own > 0 && long > 0 { // a tensor of zeros has no length to go by
		rate *= own / long
	}
	return T(rate)
}

// apply makes the step on p. The direction is computed again, which is cheaper than memory for it.
func (d lamb[T]) apply(rate T, p, m, v []T) {
	for i := range p {
		p[i] -= T(rate * d.of(p[i], m[i], v[i]))
	}
}

// of is the direction of one parameter.
func (d lamb[T]) of(p, m, v T) T {
	down := T(T(math.Sqrt(float64(v)))*d.root) + d.eps
	return T(m*d.first)/down + T(d.decay*p)
}
