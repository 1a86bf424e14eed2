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
	adam := optim.AdamW{LR: 1, Beta1: h.Beta1, Beta2: h.Beta2, Eps: cmp.Or(h.Eps, 1e-6)}
	h.Beta1, h.Beta2, h.Eps = or(h.Beta1, .9), or(h.Beta2, .999), or(h.Eps, 1e-6)
	if err := t.check("LAMB", "its step is as long as the tensor", len(p), len(g), len(m), len(v)); err != nil {
		return err
	}
	switch {
	case step < 1:
		return fmt.Errorf("optim/whole: step %d; steps are counted from 1", step)
	case !(h.Beta1 >= 0 && h.Beta1 < 1 && h.Beta2 >= 0 && h.Beta2 < 1 && h.Eps >= 0):
		return fmt.Errorf("optim/whole: LAMB with Beta1 %v, Beta2 %v, Eps %v: the betas are from 0 to 1 and less than 1, Eps is not negative", h.Beta1, h.Beta2, h.Eps)
	}
	f, _ := adam.Factors(step) // which would find the same wrong
	b1, b2, a1, a2 := T(f.Beta1), T(f.Beta2), T(f.Alpha1), T(f.Alpha2)
	d := lambStep[T]{T(f.Rate), T(f.Root), T(f.Eps), T(h.Decay)}
	sum := 0.
	for i := range p {
		m[i] = T(b1*m[i]) + T(a1*g[i])
		v[i] = T(b2*v[i]) + T(T(a2*g[i])*g[i])
		x := float64(d.of(p[i], m[i], v[i]))
		sum += float64(x * x)
	}
	own, long := math.Sqrt(squares(p)), math.Sqrt(sum)
	if h.Most > 0 {
		own = min(own, h.Most)
	}
	rate := h.LR
	if own > 0 && long > 0 { // a tensor of zeros has no length to go by
		rate *= own / long
	}
	for i := range p { // the direction is cheaper than memory for it
		p[i] -= T(T(rate) * d.of(p[i], m[i], v[i]))
	}
	return nil
}

// lambStep is what the direction of a step has beside the state: the corrections of the moments, eps and decay.
type lambStep[T optim.Float] struct{ first, root, eps, decay T }

// of is the direction of one parameter.
func (d lambStep[T]) of(p, m, v T) T {
	down := T(T(math.Sqrt(float64(v)))*d.root) + d.eps
	return T(m*d.first)/down + T(d.decay*p)
}
