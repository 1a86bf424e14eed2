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

func (m *Model) add(layer int, name string, shape ...int) {
	m.Tensors = append(m.Tensors, Tensor{Name: name, Shape: shape, Layer: layer})
}

// gpt2Small is the character-level GPT-2 of 85 million parameters that courses train
// with nanoGPT: vocabulary 65, no biases (github.com/karpathy/nanoGPT, model.py).
func gpt2Small() *Model {
	m := &Model{Name: "gpt2-85m", Source: "nanoGPT, model.py: 12 layers of 768, vocabulary 65, no biases", Layers: 12, Hidden: 768, Sequence: 1024}
	m.add(-1, "wte", 65, 768)
	m.add(-1, "wpe", 1024, 768)
	for l := range m.Layers {
		m.add(l, "ln_1", 768)
		m.add(l, "attn.c_attn", 768, 2304)
		m.add(l, "attn.c_proj", 768, 768)
		m.add(l, "ln_2", 768)
		m.add(l, "mlp.c_fc", 768, 3072)
		m.add(l, "mlp.c_proj", 3072, 768)
	}
	m.add(-1, "ln_f", 768)
	return m
}

// gpt2XL is the largest GPT-2 (Radford et al., 2019).
func gpt2XL() *Model {
	m := &Model{Name: "gpt2-xl", Source: "Radford et al. 2019: 48 layers of 1600, vocabulary 50257", Layers: 48, Hidden: 1600, Sequence: 1024}
	h := m.Hidden
	m.add(-1, "wte", 50257, h)
	m.add(-1, "wpe", 1024, h)
	for l := range m.Layers {
		for _, p := range []Tensor{
			{Name: "ln_1.weight", Shape: []int{h}}, {Name: "ln_1.bias", Shape: []int{h}},
			{Name: "attn.c_attn.weight", Shape: []int{h, 3 * h}}, {Name: "attn.c_attn.bias", Shape: []int{3 * h}},
			{Name: "attn.c_proj.weight", Shape: []int{h, h}}, {Name: "attn.c_proj.bias", Shape: []int{h}},
			{Name: "ln_2.weight", Shape: []int{h}}, {Name: "ln_2.bias", Shape: []int{h}},
			{Name: "mlp.c_fc.weight", Shape: []int{h, 4 * h}}, {Name: "mlp.c_fc.bias", Shape: []int{4 * h}},
			{Name: "mlp.c_proj.weight", Shape: []int{4 * h, h}}, {Name: "mlp.c_proj.bias", Shape: []int{h}},
		} {
			m.add(l, p.Name, p.Shape...)
		}
	}
	m.add(-1, "ln_f.weight", h)
	m.add(-1, "ln_f.bias", h)
	return m
}

// llama7B is the smallest LLaMA (Touvron et al., 2023).
func llama7B() *Model {
	m := &Model{Name: "llama-7b", Source: "Touvron et al. 2023: 32 layers of 4096, feed-forward 11008, vocabulary 32000", Layers: 32, Hidden: 4096, Sequence: 2048}
	h := m.Hidden
	m.add(-1, "embed_tokens", 32000, h)
	for l := range m.Layers {
		for _, name := range []string{"q_proj", "k_proj", "v_proj", "o_proj"} {
			m.add(l, name, h, h)
		}
		m.add(l, "gate_proj", 11008, h)
		m.add(l, "up_proj", 11008, h)
		m.add(l, "down_proj", h, 11008)
		m.add(l, "input_layernorm", h)
		m.add(l, "post_attention_layernorm", h)
	}
	m.add(-1, "norm", h)
	m.add(-1, "lm_head", 32000, h)
	return m
}

// resNet50 is the network of He et al. (2016), table 1, with the batch norms' scale
// and shift.
func resNet50() *Model {
	m := &Model{Name: "resnet50", Source: "He et al. 2016, table 1, 50 layers"}
	conv := func(name string, out, in, k int) {
		m.add(-1, name+".conv", out, in, k, k)
		m.add(-1, name+".bn.weight", out)
		m.add(-1, name+".bn.bias", out)
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
	m.add(-1, "fc.weight", 1000, 2048)
	m.add(-1, "fc.bias", 1000)
	return m
}
