package nn

import (
	"cmp"
	"math"

	"github.com/goccl/goccl/xla/hlo"
)

// deviation is that of the initial values of matrices.
const deviation = 0.02

// Linear returns x times the transposed matrix NAME.weight [out,in], plus NAME.bias if there is one, in the type Act.
func (s *Scope) Linear(x V, name string, out int, bias bool) V {
	return s.linear(x, name, out, bias, false)
}

// Conv1D is Linear with a matrix [in,out], as GPT-2 has it.
func (s *Scope) Conv1D(x V, name string, out int, bias bool) V {
	return s.linear(x, name, out, bias, true)
}

func (s *Scope) linear(x V, name string, out int, bias, turned bool) V {
	in, last := s.last("Linear", x), x.Rank()-1
	p := Param{Name: s.at + name + ".weight", Dims: []int{out, in}, Type: cmp.Or(s.m.Type, hlo.F32), Std: deviation}
	axis := 1
	if p.Turned = turned; turned {
		p.Dims, axis = []int{in, out}, 0
	}
	w := s.param(p)
	if s.Fn.Err() != nil { // for what follows it has the shape of the product
		return s.Fn.Const(s.Act(), 0).To(append(x.Dims()[:max(last, 0)], out)...)
	}
	y := hlo.Dot(x.As(s.Act()), w.As(s.Act()), []int{last}, []int{axis}, nil, nil)
	if bias {
		y = y.Add(s.Param(name+".bias", 0, 0, out).As(s.Act()))
	}
	l := s.lora
	if l != nil && l.Has == nil {
		return s.Fail("LoRA: Has is nil: give it which Linears have adapters")
	}
	if l == nil || !l.Has(s.at+name) {
		return y
	}
	at := s.at + name
	rank, scale := l.Of(at)
	if rank < 1 {
		return s.Fail("LoRA: rank %d", rank)
	}
	t, std := cmp.Or(l.Type, hlo.F32), 1/math.Sqrt(3*float64(in))
	a := s.param(Param{Name: at + ".lora_A.weight", Dims: []int{rank, in}, Type: t, Std: std, Adapter: true})
	b := s.param(Param{Name: at + ".lora_B.weight", Dims: []int{out, rank}, Type: t, Adapter: true})
	if s.Fn.Err() != nil {
		return y
	}
	a, b = a.As(t), b.As(t)
	d := hlo.Dot(s.Dropout(x.As(t), l.Dropout), a, []int{last}, []int{1}, nil, nil)
	d = hlo.Dot(d, b, []int{last}, []int{1}, nil, nil).MulC(scale)
	return y.As(t).Add(d).As(y.Type())
}

// Embed returns rows of NAME.weight [vocab,width] for tokens of any shape, in the type Wide.
func (s *Scope) Embed(tokens V, name string, vocab, width int) V {
	return s.Rows(s.Param(name+".weight", 0, deviation, vocab, width), tokens)
}

// Rows returns rows of a table [N,C] for indices of any shape, in the type Wide.
func (s *Scope) Rows(table, index V) V {
	if table.Rank() != 2 {
		return s.Fail("Rows: of a table %v: it has two dimensions", table.Dims())
	}
	if s.rec != nil && index == s.Tokens() {
		s.rec.words = least(s.rec.words, table.Dims()[0])
	}
	return table.Rows(index.Reshape(index.Len(), 1)).As(s.Wide()).Reshape(append(index.Dims(), table.Dims()[1])...)
}

// RMSNorm is the norm of Zhang and Sennrich (2019) over the last axis, by NAME.weight, in the type Act.
func (s *Scope) RMSNorm(x V, name string, eps float64) V {
	w := s.Param(name+".weight", 1, 0, s.last("RMSNorm", x)).As(s.Wide())
	x = x.As(s.Wide())
	return x.Mul(x.Mul(x).MeanLast().AddC(eps).Rsqrt()).Mul(w).As(s.Act())
}

// LayerNorm is the norm of Ba et al. (2016) over the last axis, by NAME.weight and, if there is one,
// NAME.bias, in the type Act.
func (s *Scope) LayerNorm(x V, name string, eps float64, bias bool) V {
	c := s.last("LayerNorm", x)
	w := s.Param(name+".weight", 1, 0, c).As(s.Wide())
	x = x.As(s.Wide())
	d := x.Sub(x.MeanLast())
	x = d.Mul(d.Mul(d).MeanLast().AddC(eps).Rsqrt()).Mul(w)
	if bias {
		x = x.Add(s.Param(name+".bias", 0, 0, c).As(s.Wide()))
	}
	return x.As(s.Act())
}

// SiLU returns x times its logistic function.
func SiLU(x V) V { return x.Mul(x.Logistic()) }

// GELU returns the Gaussian error linear unit, exact, by the error function.
func GELU(x V) V { return x.MulC(0.5).Mul(x.MulC(math.Sqrt2 / 2).Erf().AddC(1)) }

// TanhGELU returns GELU by a hyperbolic tangent, as GPT-2 has it.
func TanhGELU(x V) V {
	return x.MulC(0.5).Mul(x.Add(x.Mul(x).Mul(x).MulC(0.044715)).MulC(math.Sqrt(2 / math.Pi)).Tanh().AddC(1))
}

// CrossEntropy returns the mean over the tokens that count, those of Scope.In[1] that are not negative, of the
// negative logarithm of the probability by logits [B,T,V]; 0 if none counts.
func CrossEntropy(s *Scope, logits V) V { return Smoothed(0, 0)(s, logits) }

// Smoothed returns CrossEntropy with label smoothing, the share of a token's target that all words have
// alike, and the z-loss: z times the square of the logarithm of the sum of exponentials, for each token
// (tp.LossOptions has both, with their sources).
func Smoothed(smoothing, z float64) func(s *Scope, logits V) V {
	return func(s *Scope, logits V) V {
		want := s.In[1]
		v, n := s.last("CrossEntropy", logits), want.Len()
		if s.rec != nil {
			s.rec.classes = least(s.rec.classes, v)
		}
		x, want := logits.As(s.Wide()).Reshape(n, v), want.Reshape(n, 1)
		hit := s.Fn.Iota(hlo.I32, 1, n, v).Cmp("EQ", want)
		zero := s.Fn.Const(s.Wide(), 0)
		all := x.LogSumExp()
		own := hlo.If(hit, x, zero).SumLast()
		if smoothing != 0 {
			own = own.MulC(1 - smoothing).Add(x.SumLast().MulC(smoothing / float64(v)))
		}
		each := all.Sub(own)
		if z != 0 {
			each = each.Add(all.Mul(all).MulC(z))
		}
		sum := hlo.If(want.Cmp("GE", s.Fn.Const(hlo.I32, 0)), each, zero).SumAll()
		return sum.Div(counting(want, s.Wide()).Max(s.Fn.Const(s.Wide(), 1)))
	}
}
