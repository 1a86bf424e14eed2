package models

import (
	"fmt"
	"math"
	"strings"

	"github.com/goccl/goccl/xla/nn"
)

// GPT2 is what config.json of a GPT2LMHeadModel says.
type GPT2 struct {
	ModelType string   `json:"model_type"`
	Classes   []string `json:"architectures"`
	Layers    int      `json:"n_layer"`
	Heads     int      `json:"n_head"`
	Width     int      `json:"n_embd"`
	Inner     *int     `json:"n_inner"`
	Positions int      `json:"n_positions"`
	Vocab     int      `json:"vocab_size"`
	Act       string   `json:"activation_function"`
	Eps       float64  `json:"layer_norm_epsilon"`
	Tied      bool     `json:"tie_word_embeddings"`
	Scaled    bool     `json:"scale_attn_weights"`
	Range     float64  `json:"initializer_range"`
	Residual  float64  `json:"resid_pdrop"`
	Embedding float64  `json:"embd_pdrop"`
	Attention float64  `json:"attn_pdrop"`
	// NoBias leaves all biases out, as nanoGPT can. transformers has no such model.
	NoBias bool `json:"-"`
}

func newGPT2() Config {
	return &GPT2{ModelType: "gpt2", Classes: []string{"GPT2LMHeadModel"}, Layers: 12, Heads: 12, Width: 768,
		Positions: 1024, Vocab: 50257,
		Act: "gelu_new", Eps: 1e-5, Tied: true, Scaled: true, Range: .02, Residual: .1, Embedding: .1, Attention: .1}
}

// NewGPT2 returns the smallest of OpenAI's, of 124 million parameters.
func NewGPT2() *GPT2 { return newGPT2().(*GPT2) }

// Context returns the number of positions.
func (c *GPT2) Context() int { return c.Positions }

// Words returns the number of tokens.
func (c *GPT2) Words() int { return c.Vocab }

func (c *GPT2) inner() int {
	if c.Inner == nil {
		return 4 * c.Width
	}
	return *c.Inner
}

func (c *GPT2) check() error {
	if err := positive(size{"n_layer", c.Layers}, size{"n_head", c.Heads}, size{"n_embd", c.Width},
		size{"n_inner", c.inner()}, size{"n_positions", c.Positions}, size{"vocab_size", c.Vocab}); err != nil {
		return err
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("n_embd is %d: not a multiple of n_head, %d", c.Width, c.Heads)
	}
	return common(c.Layers, c.Act, c.Eps, c.Range, c.Residual, c.Embedding, c.Attention)
}

// Model makes the model: the embeddings, the layers, the last norm with the head.
func (c *GPT2) Model() *nn.Model {
	deep := c.Range / math.Sqrt(2*float64(c.Layers))
	m := &nn.Model{Loss: nn.CrossEntropy, Initial: func(p *nn.Param) {
		if p.Std > 0 {
			if p.Std = c.Range; strings.HasSuffix(p.Name, "c_proj.weight") {
				p.Std = deep
			}
		}
	}}
	m.Units = append(m.Units, nn.Unit{Name: "transformer.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		if n := s.Length(); n > c.Positions {
			return s.Fail("%d tokens: the model has %d positions", n, c.Positions)
		}
		x := s.Embed(s.Tokens(), "wte", c.Vocab, c.Width)
		x = x.Add(s.Embed(s.Positions(), "wpe", c.Positions, c.Width))
		return s.Dropout(x, c.Embedding).As(s.Res())
	}})
	for i := range c.Layers {
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("transformer.h.%d.", i), Kind: "layer", Forward: c.layer})
	}
	last := nn.Unit{Kind: "head", Forward: func(s *nn.Scope, x nn.V) nn.V {
		x = c.norm(s, x, "transformer.ln_f")
		if c.Tied {
			return head(s, x, "transformer.wte.weight")
		}
		return s.Linear(x, "lm_head", c.Vocab, false)
	}}
	if c.Tied {
		last.Uses = []int{0}
	}
	m.Units = append(m.Units, last)
	return m
}

func (c *GPT2) layer(s *nn.Scope, x nn.V) nn.V {
	b, t, n := x.Dims()[0], x.Dims()[1], c.Width
	y := c.linear(s, c.norm(s, x, "ln_1"), "attn.c_attn", 3*n)
	part := func(i int) nn.V { return y.Cut(2, i*n, (i+1)*n).Reshape(b, t, c.Heads, n/c.Heads) }
	a := nn.Attention{Dropout: c.Attention}
	if !c.Scaled {
		a.Scale = 1
	}
	y = c.linear(s, s.Attend(part(0), part(1), part(2), a), "attn.c_proj", n)
	x = x.Add(s.Dropout(y, c.Residual).As(x.Type()))
	y = activations[c.Act](c.linear(s, c.norm(s, x, "ln_2"), "mlp.c_fc", c.inner()).As(s.Wide())).As(s.Act())
	return x.Add(s.Dropout(c.linear(s, y, "mlp.c_proj", n), c.Residual).As(x.Type()))
}

func (c *GPT2) linear(s *nn.Scope, x nn.V, name string, out int) nn.V {
	return s.Conv1D(x, name, out, !c.NoBias)
}

func (c *GPT2) norm(s *nn.Scope, x nn.V, name string) nn.V {
	return s.LayerNorm(x, name, c.Eps, !c.NoBias)
}
