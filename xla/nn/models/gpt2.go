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

// NewGPT2 returns the smallest of OpenAI's, of 124 million parameters.
func NewGPT2() *GPT2 {
	return &GPT2{ModelType: "gpt2", Classes: []string{"GPT2LMHeadModel"}, Layers: 12, Heads: 12, Width: 768,
		Positions: 1024, Vocab: 50257, Act: "gelu_new", Eps: 1e-5, Tied: true, Scaled: true, Range: .02, Residual: .1,
		Embedding: .1, Attention: .1}
}

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
	if err := c.check(); err != nil {
		return wrong(err)
	}
	deep := c.Range / math.Sqrt(2*float64(c.Layers))
	m := &nn.Model{Loss: nn.CrossEntropy, Room: c.Positions, Initial: func(p *nn.Param) {
		if p.Std > 0 {
			if p.Std = c.Range; strings.HasSuffix(p.Name, "c_proj.weight") {
				p.Std = deep
			}
		}
	}}
	m.Units = append(m.Units, nn.Unit{Name: "transformer.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		if n := s.Tokens().Dims()[1]; n > c.Positions {
			return s.Fail("%d tokens: the model has %d positions", n, c.Positions)
		}
		x := s.Embed(s.Tokens(), "wte", c.Vocab, c.Width)
		x = x.Add(s.Embed(s.Positions(), "wpe", c.Positions, c.Width))
		return s.Dropout(x, c.Embedding).As(s.Res())
	}})
	for i := range c.Layers {
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("transformer.h.%d.", i), Kind: "layer", Forward: c.layer})
	}
	norm := func(s *nn.Scope, x nn.V) nn.V { return s.LayerNorm(x, "transformer.ln_f", c.Eps, !c.NoBias) }
	m.Units = append(m.Units, head(norm, c.Vocab, c.Tied, "transformer.wte.weight"))
	return m
}

func (c *GPT2) layer(s *nn.Scope, x nn.V) nn.V {
	b, t, n, bias := x.Dims()[0], x.Dims()[1], c.Width, !c.NoBias
	y := s.Conv1D(s.LayerNorm(x, "ln_1", c.Eps, bias), "attn.c_attn", 3*n, bias)
	part := func(i int) nn.V { return y.Cut(2, i*n, (i+1)*n).Reshape(b, t, c.Heads, n/c.Heads) }
	a := nn.Attention{Dropout: c.Attention}
	if !c.Scaled {
		a.Scale = 1
	}
	y = s.Conv1D(s.Attend(part(0), part(1), part(2), a), "attn.c_proj", n, bias)
	x = x.Add(s.Dropout(y, c.Residual).As(x.Type()))
	y = s.Conv1D(s.LayerNorm(x, "ln_2", c.Eps, bias), "mlp.c_fc", c.inner(), bias)
	y = s.Conv1D(activations[c.Act](y.As(s.Wide())).As(s.Act()), "mlp.c_proj", n, bias)
	return x.Add(s.Dropout(y, c.Residual).As(x.Type()))
}
