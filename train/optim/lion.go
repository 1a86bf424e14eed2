package optim

import "fmt"

// Lion steps by the sign of an average (Chen et al. 2023, algorithm 2). Its state is half of AdamW's. The paper takes a
// third to a tenth of AdamW's LR, and as many times its Decay.
type Lion struct {
	// LR is the learning rate of this step: what each parameter changes by, but for the decay.
	LR float64
	// Beta1 is how much of the state the direction has, and Beta2 how much of it is kept: from 0 to 1;
	// 0 is .9 and .99, and Zero is 0.
	Beta1, Beta2 float64
	// Decay is the weight decay, times LR.
	Decay float64
}

// ApplyLion makes a step on the parameters p with the gradients g. m is the state, zero at first.
// All have one length; else ApplyLion changes nothing and returns an error. A direction that is
// exactly 0, or no number, leaves its parameter to the decay.
func ApplyLion[T Float](h Lion, p, g, m []T) error {
	n := len(p)
	h.Beta1, h.Beta2 = or(h.Beta1, .9), or(h.Beta2, .99)
	switch {
	case !(h.Beta1 >= 0 && h.Beta1 <= 1 && h.Beta2 >= 0 && h.Beta2 <= 1):
		return fmt.Errorf("optim: Lion with Beta1 %v, Beta2 %v: they are from 0 to 1", h.Beta1, h.Beta2)
	case len(g) != n || len(m) != n:
		return fmt.Errorf("optim: %d parameters, but %d gradients, and state of %d", n, len(g), len(m))
	}
	b1, a1, b2, a2 := T(h.Beta1), T(1-h.Beta1), T(h.Beta2), T(1-h.Beta2)
	rate, keep := T(h.LR), T(1-float64(h.LR*h.Decay))
	g, m = g[:n], m[:n]
	for i := range p {
		c := T(b1*m[i]) + T(a1*g[i])
		m[i] = T(b2*m[i]) + T(a2*g[i])
		w := T(p[i] * keep)
		switch {
		case c > 0:
			w -= rate
		case c < 0:
			w += rate
		}
		p[i] = w
	}
	return nil
}
