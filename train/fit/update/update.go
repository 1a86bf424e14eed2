// Package update writes the arithmetic of optimizers into programs, as package optim has it.
package update

import (
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Group is what parameters of one kind have of their own: Rate multiplies the step's learning rate,
// Decay is the weight decay.
type Group struct{ Rate, Decay float64 }

// Hyper is what an update needs that changes from step to step: an argument [2] with the step's
// number, from 1 on, and the learning rate.
type Hyper struct {
	o                      optim.AdamW
	step, lr, bias1, bias2 nn.V
	fine                   nn.V // see Where
}

// NewHyper adds the argument.
func NewHyper(f *hlo.Func, o optim.AdamW) Hyper {
	x := f.Arg(hlo.F32, 2)
	h := Hyper{o: o, step: x.Cut(0, 0, 1).Reshape(), lr: x.Cut(0, 1, 2).Reshape()}
	one := f.Const(hlo.F32, 1)
	h.bias1 = one.Sub(f.Const(hlo.F32, o.Beta1).Pow(h.step))
	h.bias2 = one.Sub(f.Const(hlo.F32, o.Beta2).Pow(h.step))
	return h
}

// Where is h where fine is true, and else a step that changes nothing. That is so by its factors, so that no state is
// kept beside the new one.
func (h Hyper) Where(fine nn.V) Hyper {
	h.fine = fine
	h.lr = h.factor(h.lr, 0)
	return h
}

// factor is x, but unchanged in a step that changes nothing.
func (h Hyper) factor(x nn.V, unchanged float64) nn.V {
	if h.fine == nil {
		return x
	}
	return hlo.If(h.fine, x, x.Func().Const(x.Type(), unchanged))
}

// AdamW returns p, m and v after a step with the gradient g.
func (h Hyper) AdamW(p, m, v, g nn.V, of Group) (_, _, _ nn.V) {
	g = h.factor(g, 0) // which may be no number
	times := func(x nn.V, by, unchanged float64) nn.V {
		return x.Mul(h.factor(x.Func().Const(x.Type(), by), unchanged))
	}
	m = times(m, h.o.Beta1, 1).Add(g.MulC(1 - h.o.Beta1))
	v = times(v, h.o.Beta2, 1).Add(g.Mul(g).MulC(1 - h.o.Beta2))
	lr := h.lr
	if of.Rate != 1 {
		lr = lr.MulC(of.Rate)
	}
	if of.Decay != 0 {
		p = p.Sub(p.Mul(lr.MulC(of.Decay)))
	}
	return p.Sub(m.Div(h.bias1).Div(v.Div(h.bias2).Sqrt().AddC(h.o.Eps)).Mul(lr)), m, v
}

// EMA returns the moving average after the step that made p, as optim.EMA with its correction.
func (h Hyper) EMA(decay float64, average, p nn.V) nn.V {
	f := p.Func()
	keep := h.factor(f.Const(hlo.F32, decay).Min(h.step.AddC(1).Div(h.step.AddC(10))), 1)
	return average.Mul(keep).Add(p.Mul(f.Const(hlo.F32, 1).Sub(keep)))
}

// Clipped returns gradients scaled as optim.ClipFactor says, to a norm that is at most limit (0 is no limit), and what
// is 0 if they, and with a limit their norm, are finite, and else no number.
func Clipped(g []nn.V, limit float64) (clipped []nn.V, odd nn.V) {
	if len(g) == 0 {
		return g, nil
	}
	f := g[0].Func()
	sum := f.Const(hlo.F32, 0)
	for _, x := range g {
		x = x.As(hlo.F32)
		if limit > 0 {
			x = x.Mul(x)
		} else {
			x = x.Sub(x)
		}
		sum = sum.Add(x.SumAll())
	}
	if limit <= 0 {
		return g, sum
	}
	by := f.Const(hlo.F32, 1).Min(f.Const(hlo.F32, limit).Div(sum.Sqrt().AddC(optim.ClipEps)))
	for _, x := range g {
		clipped = append(clipped, x.Mul(by.As(x.Type())))
	}
	return clipped, sum.Sub(sum)
}
