package main

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/xla/hlo"
)

// value is short for what a program is made of.
type value = *hlo.Value

// shape is a model's: GPT-2 as nanoGPT trains it, without biases and dropout, the head tied to the
// embedding of tokens; or, openAI, as OpenAI has trained it and Hugging Face has it: with biases,
// and GELU by a hyperbolic tangent.
type shape struct {
	layers, heads, width, context, vocab int
	openAI                               bool

	act   hlo.Type // of products and what they are fed
	res   hlo.Type // of the residual stream
	cudnn bool     // attention by cuDNN
	again bool     // layers are computed once more in the backward pass, of which their inputs are kept alone
}

// param is a parameter tensor.
type param struct {
	name  string
	unit  int // embeddings are 0, the layers follow, and the last norm is the last
	dims  []int
	std   float64 // of its initial values; 0: all are 1
	bias  bool    // initial values are 0
	decay bool
}

func (p param) size() int {
	n := 1
	for _, d := range p.dims {
		n *= d
	}
	return n
}

// params lists the parameters in the order of programs' arguments, by Hugging Face's names. A bias
// follows what it is of.
func (m *shape) params() (list []param) {
	c := m.width
	add := func(unit int, name string, std float64, dims ...int) {
		list = append(list, param{name + ".weight", unit, dims, std, false, len(dims) > 1})
		if m.openAI && unit > 0 {
			list = append(list, param{name + ".bias", unit, dims[len(dims)-1:], 0, true, false})
		}
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

// each is how many parameters there are of each linear map and norm, and perLayer how many of a layer.
func (m *shape) each() int {
	if m.openAI {
		return 2
	}
	return 1
}

func (m *shape) perLayer() int { return 6 * m.each() }

// at are the parameters of the i-th linear map or norm of a unit.
func (m *shape) at(p []value, i int) []value { return p[i*m.each() : (i+1)*m.each()] }

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

// linear is x times a matrix, plus a bias if there is one.
func (m *shape) linear(x value, p []value) value {
	x = hlo.Dot(x, p[0].As(m.act), []int{1}, []int{0}, nil, nil)
	if len(p) > 1 {
		x = x.Add(p[1].As(m.act))
	}
	return x
}

// wide is the type of what must not be rounded much.
func (m *shape) wide() hlo.Type {
	if m.act == hlo.F64 { // for tests, by differences
		return hlo.F64
	}
	return hlo.F32
}

// norm is layer norm of x [N,C].
func (m *shape) norm(x value, p []value) value {
	x = x.As(m.wide())
	d := x.Sub(x.MeanLast())
	x = d.Mul(d.Mul(d).MeanLast().AddC(1e-5).Rsqrt()).Mul(p[0].As(m.wide()))
	if len(p) > 1 {
		x = x.Add(p[1].As(m.wide()))
	}
	return x.As(m.act)
}

func (m *shape) gelu(x value) value {
	x = x.As(m.wide())
	if m.openAI {
		return x.MulC(0.5).Mul(x.Add(x.Mul(x).Mul(x).MulC(0.044715)).MulC(math.Sqrt(2 / math.Pi)).Tanh().AddC(1)).As(m.act)
	}
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
	y := m.linear(m.norm(x, m.at(p, 0)), m.at(p, 1))
	var qkv [3]value
	for i := range qkv {
		qkv[i] = y.Cut(1, i*c, (i+1)*c).Reshape(n/m.context, m.context, m.heads, c/m.heads)
	}
	o := m.attention(qkv[0], qkv[1], qkv[2]).Reshape(n, c)
	x = x.Add(m.linear(o, m.at(p, 2)).As(m.res))
	y = m.gelu(m.linear(m.norm(x, m.at(p, 3)), m.at(p, 4)))
	return x.Add(m.linear(y, m.at(p, 5)).As(m.res))
}

// head is the mean loss of x [N,C], where tokens [N,1] are wanted; norm are the parameters of the last unit.
func (m *shape) head(x value, norm []value, wte, want value) value {
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
	k := m.perLayer()
	for i := range m.layers {
		in := append([]value{x}, p[2+k*i:2+k*(i+1)]...)
		layer := func(in []value) value { return m.layer(in[0], in[1:]) }
		if m.again {
			x = hlo.Again(in, layer)
		} else {
			x = layer(in)
		}
	}
	return m.head(x, p[2+k*m.layers:], p[0], want)
}
