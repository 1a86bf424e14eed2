package models

import (
	"cmp"
	"fmt"

	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Llama is what config.json of a LlamaForCausalLM says, and of models that differ from it in little: Mistral,
// Qwen 2 and 3.
type Llama struct {
	ModelType string   `json:"model_type"`
	Classes   []string `json:"architectures"`
	Vocab     int      `json:"vocab_size"`
	Width     int      `json:"hidden_size"`
	Inner     int      `json:"intermediate_size"`
	Layers    int      `json:"num_hidden_layers"`
	Heads     int      `json:"num_attention_heads"`
	KVHeads   int      `json:"num_key_value_heads"`
	HeadDim   int      `json:"head_dim"`
	Positions int      `json:"max_position_embeddings"`
	Eps       float64  `json:"rms_norm_eps"`
	Tied      bool     `json:"tie_word_embeddings"`
	Act       string   `json:"hidden_act"`
	Bias      bool     `json:"attention_bias"`
	InnerBias bool     `json:"mlp_bias"`
	Dropout   float64  `json:"attention_dropout"`
	Range     float64  `json:"initializer_range"`
	Pad       *int     `json:"pad_token_id,omitempty"` // what is put in at these tokens is not trained
	// Theta and Scaling are how transformers 4 has Rope.
	Theta   float64 `json:"rope_theta,omitempty"`
	Scaling *Rope   `json:"rope_scaling,omitempty"`
	Rope    *Rope   `json:"rope_parameters,omitempty"`
	Old     float64 `json:"original_max_position_embeddings,omitempty"` // before that of Rope
	// Window is the number of tokens that a token of some layers attends to: see LayerTypes.
	Window          *int     `json:"sliding_window"`
	UseWindow       bool     `json:"use_sliding_window,omitempty"`
	MaxWindowLayers int      `json:"max_window_layers"`
	LayerTypes      []string `json:"layer_types,omitempty"`
}

// NewLlama returns Llama 2 with 7 billion parameters.
func NewLlama() *Llama {
	return &Llama{ModelType: "llama", Classes: []string{"LlamaForCausalLM"}, Vocab: 32000, Width: 4096, Inner: 11008,
		Layers: 32, Heads: 32, Positions: 2048, Eps: 1e-6, Act: "silu", Range: .02}
}

// Context returns the number of positions.
func (c *Llama) Context() int { return c.Positions }

// Words returns the number of tokens.
func (c *Llama) Words() int { return c.Vocab }

// check also fills in what follows from other fields.
func (c *Llama) check() error {
	c.KVHeads = cmp.Or(c.KVHeads, c.Heads)
	// What transformers does not read in these is nothing here, too.
	c.Bias = c.Bias && (c.ModelType == "llama" || c.ModelType == "qwen3")
	c.InnerBias = c.InnerBias && c.ModelType == "llama"
	if c.HeadDim == 0 && c.Heads > 0 {
		if c.Width%c.Heads != 0 {
			return fmt.Errorf("hidden_size is %d: not a multiple of num_attention_heads, %d, and there is no head_dim", c.Width, c.Heads)
		}
		c.HeadDim = c.Width / c.Heads
	}
	if err := positive(size{"vocab_size", c.Vocab}, size{"hidden_size", c.Width}, size{"intermediate_size", c.Inner},
		size{"num_hidden_layers", c.Layers}, size{"num_attention_heads", c.Heads}, size{"num_key_value_heads", c.KVHeads},
		size{"head_dim", c.HeadDim}, size{"max_position_embeddings", c.Positions}); err != nil {
		return err
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads is %d: not a multiple of num_key_value_heads, %d", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim is %d: want an even number", c.HeadDim)
	case c.Pad != nil && (*c.Pad < -c.Vocab || *c.Pad >= c.Vocab):
		return fmt.Errorf("pad_token_id is %d: vocab_size is %d", *c.Pad, c.Vocab)
	case c.HeadDim > 1<<16 || c.Heads > most/c.HeadDim:
		return fmt.Errorf("num_attention_heads is %d and head_dim %d: too many", c.Heads, c.HeadDim)
	}
	return cmp.Or(c.windows(), c.rope(), common(c.Layers, c.Act, c.Eps, c.Range, c.Dropout))
}

// Model makes the model: the embedding, the layers, the head.
func (c *Llama) Model() *nn.Model {
	own := *c // which check fills in
	c = &own
	if err := c.check(); err != nil {
		return wrong(err)
	}
	m := &nn.Model{Loss: nn.CrossEntropy, Initial: func(p *nn.Param) {
		if p.Std > 0 {
			p.Std = c.Range
		}
	}}
	if c.Rope.Type == "dynamic" { // beyond that each token has other angles than those before it, whose keys are kept
		m.Room = c.Positions
	}
	m.Units = append(m.Units, nn.Unit{Name: "model.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		x := s.Embed(s.Tokens(), "embed_tokens", c.Vocab, c.Width)
		if c.Pad != nil {
			pad := s.Fn.Const(hlo.I32, float64((*c.Pad+c.Vocab)%c.Vocab)) // from the end if negative
			x = hlo.If(s.Tokens().Reshape(append(s.Tokens().Dims(), 1)...).Cmp("EQ", pad), hlo.Stop(x), x)
		}
		return x.As(s.Res())
	}})
	for i := range c.Layers {
		window, kind := c.window(i), "layer"
		if window > 0 {
			kind = "layer_window"
		}
		layer := func(s *nn.Scope, x nn.V) nn.V { return c.layer(s, x, window) }
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("model.layers.%d.", i), Kind: kind, Forward: layer})
	}
	norm := func(s *nn.Scope, x nn.V) nn.V { return s.RMSNorm(x, "model.norm", c.Eps) }
	m.Units = append(m.Units, head(norm, c.Vocab, c.Tied, "model.embed_tokens.weight"))
	return m
}

func (c *Llama) layer(s *nn.Scope, x nn.V, window int) nn.V {
	b, t := x.Dims()[0], x.Dims()[1]
	bias := c.Bias || c.ModelType == "qwen2"
	y := s.RMSNorm(x, "input_layernorm", c.Eps)
	freq, scale := c.Rope.frequencies(c.HeadDim, c.Positions, t)
	heads := func(name string, n int) nn.V {
		return s.Linear(y, "self_attn."+name+"_proj", n*c.HeadDim, bias).Reshape(b, t, n, c.HeadDim)
	}
	turned := func(name string, n int) nn.V {
		h := heads(name, n)
		if c.ModelType == "qwen3" {
			h = s.RMSNorm(h, "self_attn."+name+"_norm", c.Eps)
		}
		return s.Rotate(h, freq, scale)
	}
	q, k, v := turned("q", c.Heads), turned("k", c.KVHeads), heads("v", c.KVHeads)
	y = s.Attend(q, k, v, nn.Attention{Window: window, Dropout: c.Dropout})
	x = x.Add(s.Linear(y, "self_attn.o_proj", c.Width, c.Bias).As(x.Type()))
	y = s.RMSNorm(x, "post_attention_layernorm", c.Eps)
	gate := activations[c.Act](s.Linear(y, "mlp.gate_proj", c.Inner, c.InnerBias).As(s.Wide())).As(s.Act())
	y = s.Linear(gate.Mul(s.Linear(y, "mlp.up_proj", c.Inner, c.InnerBias)), "mlp.down_proj", c.Width, c.InnerBias)
	return x.Add(y.As(x.Type()))
}
