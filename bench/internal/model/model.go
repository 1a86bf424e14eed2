// Package model knows the shapes of some real models: whose gradients the sizes of
// -sizes gpt2-85m are, and what a training step of each would send.
package model

import (
	"fmt"

	"github.com/goccl/goccl/bench/internal/prose"
)

// Model is a network, as far as its communication goes.
type Model struct {
	Name    string
	Source  string   // where the shapes are published
	Tensors []Tensor // the parameters, in the order of the forward pass

	// Of a transformer: Layers is 0 for any other.
	Layers, Hidden, Sequence int
}

// Tensor is one parameter.
type Tensor struct {
	Name  string
	Shape []int
	Layer int // of a transformer's block, from 0; -1 outside of them
}

// Elements is the number of elements of t.
func (t Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Parameters is the number of elements of all tensors.
func (m *Model) Parameters() int {
	n := 0
	for _, t := range m.Tensors {
		n += t.Elements()
	}
	return n
}

// Sizes are the distinct tensor sizes, in elements, in the order in which they first come.
func (m *Model) Sizes() []int {
	var sizes []int
	seen := map[int]bool{}
	for _, t := range m.Tensors {
		if n := t.Elements(); !seen[n] {
			seen[n] = true
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// maker makes a model when it is asked for.
type maker struct {
	name string
	make func() *Model
}

// models are all there are.
var models = []maker{
	{"gpt2-85m", gpt2Small},
	{"gpt2-xl", gpt2XL},
	{"llama-7b", llama7B},
	{"resnet50", resNet50},
}

// Names are the models' names.
func Names() []string { return prose.Names(models, func(m maker) string { return m.name }) }

// Named is the model of that name, or nil.
func Named(name string) *Model {
	for _, m := range models {
		if m.name == name {
			return m.make()
		}
	}
	return nil
}

// add adds tensors to m, in a layer or, with -1, in none.
func (m *Model) add(layer int, tensors ...Tensor) {
	for _, t := range tensors {
		t.Layer = layer
		m.Tensors = append(m.Tensors, t)
	}
}

// tensor is a tensor for add, which sets its layer.
func tensor(name string, shape ...int) Tensor { return Tensor{Name: name, Shape: shape} }

// transformer adds to m what comes before its blocks, the blocks, which are alike, and what comes after them.
func (m *Model) transformer(before, block, after []Tensor) *Model {
	m.add(-1, before...)
	for l := range m.Layers {
		m.add(l, block...)
	}
	m.add(-1, after...)
	return m
}

// gpt2Small is the character-level GPT-2 of 85 million parameters that courses train
// with nanoGPT: vocabulary 65, no biases (github.com/karpathy/nanoGPT, model.py).
func gpt2Small() *Model {
	m := &Model{Name: "gpt2-85m", Source: "nanoGPT, model.py: 12 layers of 768, vocabulary 65, no biases", Layers: 12,
		Hidden: 768, Sequence: 1024}
	return m.transformer([]Tensor{tensor("wte", 65, 768), tensor("wpe", 1024, 768)}, []Tensor{
		tensor("ln_1", 768), tensor("attn.c_attn", 768, 2304), tensor("attn.c_proj", 768, 768),
		tensor("ln_2", 768), tensor("mlp.c_fc", 768, 3072), tensor("mlp.c_proj", 3072, 768),
	}, []Tensor{tensor("ln_f", 768)})
}

// gpt2XL is the largest GPT-2 (Radford et al., 2019).
func gpt2XL() *Model {
	m := &Model{Name: "gpt2-xl", Source: "Radford et al. 2019: 48 layers of 1600, vocabulary 50257", Layers: 48,
		Hidden: 1600, Sequence: 1024}
	h := m.Hidden
	return m.transformer([]Tensor{tensor("wte", 50257, h), tensor("wpe", 1024, h)}, []Tensor{
		tensor("ln_1.weight", h), tensor("ln_1.bias", h),
		tensor("attn.c_attn.weight", h, 3*h), tensor("attn.c_attn.bias", 3*h),
		tensor("attn.c_proj.weight", h, h), tensor("attn.c_proj.bias", h),
		tensor("ln_2.weight", h), tensor("ln_2.bias", h),
		tensor("mlp.c_fc.weight", h, 4*h), tensor("mlp.c_fc.bias", 4*h),
		tensor("mlp.c_proj.weight", 4*h, h), tensor("mlp.c_proj.bias", h),
	}, []Tensor{tensor("ln_f.weight", h), tensor("ln_f.bias", h)})
}

// llama7B is the smallest LLaMA (Touvron et al., 2023).
func llama7B() *Model {
	m := &Model{Name: "llama-7b", Source: "Touvron et al. 2023: 32 layers of 4096, feed-forward 11008, vocabulary 32000",
		Layers: 32, Hidden: 4096, Sequence: 2048}
	h := m.Hidden
	return m.transformer([]Tensor{tensor("embed_tokens", 32000, h)}, []Tensor{
		tensor("q_proj", h, h), tensor("k_proj", h, h), tensor("v_proj", h, h), tensor("o_proj", h, h),
		tensor("gate_proj", 11008, h), tensor("up_proj", 11008, h), tensor("down_proj", h, 11008),
		tensor("input_layernorm", h), tensor("post_attention_layernorm", h),
	}, []Tensor{tensor("norm", h), tensor("lm_head", 32000, h)})
}

// resNet50 is the network of He et al. (2016), table 1, with the batch norms' scale
// and shift.
func resNet50() *Model {
	m := &Model{Name: "resnet50", Source: "He et al. 2016, table 1, 50 layers"}
	conv := func(name string, out, in, k int) {
		m.add(-1, tensor(name+".conv", out, in, k, k), tensor(name+".bn.weight", out), tensor(name+".bn.bias", out))
	}
	conv("stem", 64, 3, 7)
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for b := range blocks {
			name := fmt.Sprintf("layer%d.%d", stage+1, b)
			conv(name+".1", width, in, 1)
			conv(name+".2", width, width, 3)
			conv(name+".3", 4*width, width, 1)
			if b == 0 {
				conv(name+".shortcut", 4*width, in, 1)
			}
			in = 4 * width
		}
	}
	m.add(-1, tensor("fc.weight", 1000, 2048), tensor("fc.bias", 1000))
	return m
}
