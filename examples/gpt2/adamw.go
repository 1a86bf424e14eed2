package main

import (
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
)

// AdamW's numbers, as nanoGPT has them.
const (
	beta1, beta2 = 0.9, 0.95
	epsilon      = 1e-8
	decay        = 0.1
)

// hyper is what an update needs that changes from step to step: an argument [2] with the step's
// number, from 1 on, and the learning rate.
type hyper struct{ step, lr, bias1, bias2 value }

func newHyper(f *hlo.Func) hyper {
	x := f.Arg(hlo.F32, 2)
	h := hyper{step: x.Cut(0, 0, 1).Reshape(), lr: x.Cut(0, 1, 2).Reshape()}
	one := f.Const(hlo.F32, 1)
	h.bias1 = one.Sub(f.Const(hlo.F32, beta1).Pow(h.step))
	h.bias2 = one.Sub(f.Const(hlo.F32, beta2).Pow(h.step))
	return h
}

// adamw returns p, m and v after a step with the gradient g, as package optim has it.
func (h hyper) adamw(p, m, v, g value, decays bool) (_, _, _ value) {
	m = m.MulC(beta1).Add(g.MulC(1 - beta1))
	v = v.MulC(beta2).Add(g.Mul(g).MulC(1 - beta2))
	if decays {
		p = p.Sub(p.Mul(h.lr.MulC(decay)))
	}
	return p.Sub(m.Div(h.bias1).Div(v.Div(h.bias2).Sqrt().AddC(epsilon)).Mul(h.lr)), m, v
}

// clipped are gradients scaled as optim.ClipFactor says, to a norm that is at most limit, and the norm. 0 is no limit.
func clipped(g []value, limit float64) ([]value, value) {
	f := g[0].Func()
	sum := f.Const(hlo.F32, 0)
	for _, x := range g {
		x = x.As(hlo.F32)
		sum = sum.Add(x.Mul(x).SumAll())
	}
	norm := sum.Sqrt()
	if limit <= 0 {
		return g, norm
	}
	by := f.Const(hlo.F32, 1).Min(f.Const(hlo.F32, limit).Div(norm.AddC(optim.ClipEps)))
	out := make([]value, len(g))
	for i, x := range g {
		out[i] = x.Mul(by.As(x.Type()))
	}
	return out, norm
}

// updates are all parameters, then their first, then their second moments, after a step.
func updates(ps []param, p, m, v, g []value, h hyper, limit float64) []value {
	g, _ = clipped(g, limit)
	n := len(ps)
	out := make([]value, 3*n)
	for i := range ps {
		out[i], out[n+i], out[2*n+i] = h.adamw(p[i], m[i], v[i], g[i], ps[i].decay)
	}
	return out
}
