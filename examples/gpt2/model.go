package main

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/xla/hlo"
)

// value is short for what a program is made of.
type value = *hlo.Value

// shape is a model's: GPT-2 as nanoGPT trains it, without biases and dropout, the head tied to the embedding of tokens.
type shape struct {
	layers, heads, width, context, vocab int

	act   hlo.Type // of products and what they are fed
	res   hlo.Type // of the residual stream
	cudnn bool     // attention by cuDNN
}

// param is a parameter tensor.
type param struct {
	name  string
	unit  int // embeddings are 0, the layers follow, and the last norm is the last
	dims  []int
	std   float64 // of its initial values; 0: all are 1
	decay bool
}

func (p param) size() int {
	n := 1
	for _, d := range p.dims {
		n *= d
	}
	return n
}

// perLayer is how many parameters a layer has.
const perLayer = 6

// params lists the parameters in the order of programs' arguments, by Hugging Face's names.
func (m *shape) params() (list []param) {
	c := m.width
	add := func(unit int, name string, std float64, dims ...int) {
		list = append(list, param{name, unit, dims, std, len(dims) > 1})
	}
	add(0, "wte", 0.02, m.vocab, c)
	add(0, "wpe", 0.02, m.context, c)
	out := 0.02 / math.Sqrt(2*float64(m.layers))
	for i := range m.layers {
		h := fmt.Sprintf("h.%d.", i)
		add(1+i, h+"ln_1", 0, c)
		add(1+i, h+"attn.c_attn", 0.02, c, 3*c)
		add(1+i, h+"attn.c_proj", out, c, c)
		add(1+i, h+"ln_2", 0, c)
		add(1+i, h+"mlp.c_fc", 0.02, c, 4*c)
		add(1+i, h+"mlp.c_proj", out, 4*c, c)
	}
	add(1+m.layers, "ln_f", 0, c)
	return list
}

// count is the number of parameters.
func (m *shape) count() (n int) {
	for _, p := range m.params() {
		n += p.size()
	}
	return n
}

// flops is what a token costs, forward and backward, as nanoGPT counts: the embedding of positions is no product.
func (m *shape) flops() float64 {
	return 6*float64(m.count()-m.context*m.width) + 12*float64(m.layers*m.width*m.context)
}

func product(x, w value) value { return hlo.Dot(x, w, []int{1}, []int{0}, nil, nil) }

// wide is the type of what must not be rounded much.
func (m *shape) wide() hlo.Type {
	if m.act == hlo.F64 { // for tests, by differences
		return hlo.F64
	}
	return hlo.F32
}

// norm is layer norm of x [N,C].
func (m *shape) norm(x, w value) value {
	x = x.As(m.wide())
	d := x.Sub(x.MeanLast())
	return d.Mul(d.Mul(d).MeanLast().AddC(1e-5).Rsqrt()).Mul(w.As(m.wide())).As(m.act)
}

func (m *shape) gelu(x value) value {
	x = x.As(m.wide())
	return x.Mul(x.MulC(1 / math.Sqrt2).Erf().AddC(1).MulC(0.5)).As(m.act)
}

// tokens cuts a batch [B,T+1] into what goes in and what is wanted, each [B*T,1].
func (m *shape) tokens(batch value) (in, want value) {
	n := batch.Dims()[0] * m.context
	return batch.Cut(1, 0, m.context).Reshape(n, 1), batch.Cut(1, 1, m.context+1).Reshape(n, 1)
}

// embed is the embeddings of tokens [N,1], [N,C].
func (m *shape) embed(wte, wpe, in value) value {
	n := in.Dims()[0]
	x := wte.Rows(in).As(m.wide())
	if wte.Type() == hlo.BF16 { // a token's gradients are added as float32, and rounded once
		x = hlo.With(x, []value{wte}, func(d value) []value {
			return []value{d.Func().Const(d.Type(), 0).To(wte.Dims()...).AddRows(in, d).As(wte.Type())}
		})
	}
	x = x.Reshape(n/m.context, m.context, m.width)
	return x.Add(wpe.As(m.wide())).Reshape(n, m.width).As(m.res)
}

// layer is one layer of x [N,C]; p are its parameters.
func (m *shape) layer(x value, p []value) value {
	n, c := x.Dims()[0], m.width
	y := product(m.norm(x, p[0]), p[1].As(m.act))
	var qkv [3]value
	for i := range qkv {
		qkv[i] = y.Cut(1, i*c, (i+1)*c).Reshape(n/m.context, m.context, m.heads, c/m.heads)
	}
	o := m.attention(qkv[0], qkv[1], qkv[2]).Reshape(n, c)
	x = x.Add(product(o, p[2].As(m.act)).As(m.res))
	y = m.gelu(product(m.norm(x, p[3]), p[4].As(m.act)))
	return x.Add(product(y, p[5].As(m.act)).As(m.res))
}

// head is the mean loss of x [N,C], where tokens [N,1] are wanted.
func (m *shape) head(x, norm, wte, want value) value {
	f, n := x.Func(), x.Dims()[0]
	logits := hlo.Dot(m.norm(x, norm), wte.As(m.act), []int{1}, []int{1}, nil, nil).As(m.wide())
	top := hlo.Stop(logits.MaxLast())
	sum := logits.Sub(top).Exp().SumLast().Log().Add(top)
	hit := f.Iota(hlo.I32, 1, n, m.vocab).Cmp("EQ", want)
	return sum.Sub(hlo.If(hit, logits, f.Const(m.wide(), 0)).SumLast()).SumAll().MulC(1 / float64(n))
}

// loss is the mean loss of a batch [B,T+1].
func (m *shape) loss(p []value, batch value) value {
	in, want := m.tokens(batch)
	x := m.embed(p[0], p[1], in)
	for i := range m.layers {
		x = m.layer(x, p[2+perLayer*i:2+perLayer*(i+1)])
	}
	return m.head(x, p[len(p)-1], p[0], want)
}
