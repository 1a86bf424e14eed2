// Package models has the models of Hugging Face's that package nn writes: GPT-2, Llama 2 and 3, Qwen 2 and 3,
// Mistral. [Read] reads their config.json, of transformers 4 or 5; [Config.Model] makes the model; [Write]
// writes config.json. The parameters' names are theirs, so package train/ckpt loads and exports them.
package models

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// A Config is what config.json says of a model: a *GPT2 or a *Llama.
type Config interface {
	// Model makes the model. Its Act, Type and LoRA may be set before it is used.
	Model() *nn.Model
	// Context returns the most tokens that the model was made for.
	Context() int
	// Words returns the number of tokens in its vocabulary.
	Words() int
	check() error
}

// made makes a Config with the values that transformers has for what config.json leaves out.
var made = map[string]func() Config{
	"gpt2": func() Config { return NewGPT2() }, "llama": func() Config { return NewLlama() }, "mistral": newMistral,
	"qwen2": newQwen2, "qwen3": newQwen3,
}

// only are the values of fields that change a model, and that no model here reads. A field that is missing or
// null is fine.
var only = map[string]any{
	"quantization_config": nil, "is_encoder_decoder": false, "add_cross_attention": false, "use_mrope": false,
	"scale_attn_by_inverse_layer_idx": false, "partial_rotary_factor": 1., "attn_logit_softcapping": nil,
	"final_logit_softcapping": nil, "quantization": nil, "compression_config": nil, "query_pre_attn_scalar": nil,
	"num_experts": nil, "num_local_experts": nil,
}

// renamed are fields of a GPT-2 by names that transformers takes for n_embd and others, too, and Read does not.
var renamed = []string{"hidden_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"}

// Read reads config.json in dir. What the model would need and is not here is an error that names the field
// and its value.
func Read(dir string) (Config, error) {
	text, err := files.ReadIn(dir, "config.json", 1<<20)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	return c, nil
}

// Parse is Read of what is in the file.
func Parse(text []byte) (Config, error) {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	kind, _ := all["model_type"].(string)
	if made[kind] == nil {
		return nil, fmt.Errorf("model_type is %q: there are gpt2, llama, mistral, qwen2, qwen3", kind)
	}
	for field, value := range all {
		want, has := only[field]
		if value != nil && (has && value != want || kind == "gpt2" && slices.Contains(renamed, field)) {
			return nil, fmt.Errorf("%s is %s: not supported", field, short(value))
		}
	}
	if list, has := all["architectures"].([]any); has && len(list) > 0 && !slices.ContainsFunc(list, causal) {
		return nil, fmt.Errorf("architectures are %s: want one that predicts tokens, ...ForCausalLM", short(list))
	}
	c := made[kind]()
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	heads, has := all["num_key_value_heads"]
	if l, ok := c.(*Llama); ok && has && heads == nil { // null: as many as heads, whatever the default is
		l.KVHeads = 0
	}
	return c, c.check()
}

// causal reports whether a class of transformers is one that predicts tokens, or what it is built on.
func causal(class any) bool {
	name, _ := class.(string)
	return strings.HasSuffix(name, "ForCausalLM") || strings.HasSuffix(name, "Model") // and LMHeadModel
}

// short is a value as JSON, cut.
func short(v any) string {
	text, _ := json.Marshal(v)
	if len(text) > 60 {
		text = append(text[:60], "..."...)
	}
	return string(text)
}

// Write writes c as config.json into dir, so that transformers loads what ckpt.Export writes beside it. To
// keep fields that Read does not know, such as numbers of special tokens, copy the file instead.
func Write(dir string, c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, "config.json"), append(text, '\n'))
}

// Rename says which tensor of a checkpoint, whose tensors have these names, is a parameter, for
// ckpt.LoadOptions: a model that was saved without its head has names without what is before the first dot.
func Rename(tensors []string) func(name string) string {
	has := map[string]bool{}
	for _, name := range tensors {
		has[name] = true
	}
	return func(name string) string {
		if _, inner, cut := strings.Cut(name, "."); cut && !has[name] && has[inner] {
			return inner
		}
		return name
	}
}

// activations are those by transformers' names.
var activations = map[string]func(nn.V) nn.V{
	"silu": nn.SiLU, "swish": nn.SiLU, "gelu": nn.GELU, "gelu_new": nn.TanhGELU, "gelu_pytorch_tanh": nn.TanhGELU,
	"relu": func(x nn.V) nn.V { return x.Max(x.Func().Const(x.Type(), 0)) },
}

// size is a field that is a number of things.
type size struct {
	field string
	value int
}

// most is more than any model has of anything, and little enough that products of two fit into an int.
const most = 1 << 30

func positive(sizes ...size) error {
	for _, s := range sizes {
		if s.value < 1 || s.value > most {
			return fmt.Errorf("%s is %d: want 1 to %d", s.field, s.value, most)
		}
	}
	return nil
}

// common checks what all models have.
func common(layers int, act string, eps, deviation float64, rates ...float64) error {
	switch {
	case layers > 1<<14:
		return fmt.Errorf("the number of layers is %d: want at most %d", layers, 1<<14)
	case activations[act] == nil:
		return fmt.Errorf("the activation is %q: not supported", act)
	case !(eps > 0 && eps < 1):
		return fmt.Errorf("the epsilon of norms is %v: want a number between 0 and 1", eps)
	case !(deviation >= 0 && deviation < 1):
		return fmt.Errorf("initializer_range is %v: want a number from 0 to below 1", deviation)
	}
	for _, r := range rates {
		if !(r >= 0 && r < 1) {
			return fmt.Errorf("a rate of dropout is %v: want 0 to below 1", r)
		}
	}
	return nil
}

// head is the last unit: a norm, and the product with a matrix of its own, or where it is tied with the table of the
// first unit, transposed.
func head(norm func(s *nn.Scope, x nn.V) nn.V, words int, tied bool, table string) nn.Unit {
	u := nn.Unit{Kind: "head", Forward: func(s *nn.Scope, x nn.V) nn.V {
		if x = norm(s, x); !tied {
			return s.Linear(x, "lm_head", words, false)
		}
		return hlo.Dot(x, s.Of(table).As(s.Act()), []int{x.Rank() - 1}, []int{1}, nil, nil)
	}}
	if tied {
		u.Uses = []int{0}
	}
	return u
}

// wrong is a model in the place of one that there is not: its parameters are an error.
func wrong(err error) *nn.Model {
	u := nn.Unit{Kind: "wrong", Forward: func(s *nn.Scope, _ nn.V) nn.V { return s.Fail("%w", err) }}
	return &nn.Model{Units: []nn.Unit{u, u}, Loss: nn.CrossEntropy}
}
