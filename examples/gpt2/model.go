package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// shape returns nanoGPT's GPT-2 of a shape, without biases and dropout.
func shape(layers, heads, width, context, vocab int) models.GPT2 {
	m := models.NewGPT2()
	m.Layers, m.Heads, m.Width, m.Positions, m.Vocab = layers, heads, width, context, vocab
	m.NoBias, m.Act, m.Residual, m.Embedding, m.Attention = true, "gelu", 0, 0, 0
	return *m
}

// presets are shapes of models.
var presets = map[string]models.GPT2{
	"tiny": shape(2, 2, 64, 32, 256), "char": shape(4, 4, 128, 128, 256), "gpt2": shape(12, 12, 768, 1024, 50304),
}

// describe reads the model in a directory of Hugging Face's. It is trained without dropout.
func describe(dir string) (m models.GPT2, err error) {
	c, err := models.Read(dir)
	if err != nil {
		return m, err
	}
	p, is := c.(*models.GPT2)
	if !is {
		return m, fmt.Errorf("%s has another model; this program knows gpt2", dir)
	}
	p.Residual, p.Embedding, p.Attention = 0, 0, 0
	return *p, nil
}

// network is the model as units.
func (c *config) network() *nn.Model {
	m := c.model.Model()
	m.Act, m.Res = hlo.F32, hlo.Type(c.residual)
	if c.Fit.BF16 {
		m.Act = hlo.BF16
	}
	return m
}

// training says how the model is trained: by AdamW with nanoGPT's numbers.
func (c *config) training() *fit.Options {
	o := c.Fit
	o.Tokens, o.Wait, o.Fused, o.Initial = c.model.Positions, c.Run.Wait, c.attn != "softmax", c.initial
	o.Adam = optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1}
	return &o
}

// initial is the first values of parameter i.
func (c *config) initial(i int, p nn.Param) []float32 {
	rnd := rand.New(rand.NewPCG(c.Fit.Seed, uint64(i)))
	x := make([]float32, p.Len())
	for k := range x {
		if x[k] = float32(p.Mean); p.Std > 0 {
			x[k] = float32(rnd.NormFloat64() * p.Std)
		}
	}
	return x
}

// params lists the parameters.
func (c *config) params() (list []nn.Param) {
	batch := hlo.Array{Type: hlo.I32, Dims: []int{1, c.model.Positions}}
	units, _, err := c.network().Params(batch, batch)
	if err != nil {
		panic(err) // the flags were checked
	}
	for _, ps := range units {
		list = append(list, ps...)
	}
	return list
}

// count is the number of parameters.
func (c *config) count() (n int) {
	for _, p := range c.params() {
		n += p.Len()
	}
	return n
}

// flops is what a token costs, forward and backward, as nanoGPT counts: the embedding of positions is no product.
func (c *config) flops() float64 {
	m := &c.model
	return history.FlopsPerToken(c.count()-m.Positions*m.Width, m.Layers, m.Width, m.Positions)
}

// progress is what a checkpoint keeps of the flags.
type progress struct {
	Rows, Heads int
	Seed        uint64
}

// resumes says whether a checkpoint is one of this run.
func (c *config) resumes(dir string, state json.RawMessage) error {
	var p progress
	if err := json.Unmarshal(state, &p); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	switch {
	case p.Seed != c.Fit.Seed || p.Rows != c.Rows:
		return fmt.Errorf("%s was trained with -seed %d -rows %d: give these, so that the data go on as they did", dir, p.Seed, p.Rows)
	case p.Heads != c.model.Heads:
		return fmt.Errorf("%s was trained with -heads %d: give that, too", dir, p.Heads)
	}
	return nil
}
