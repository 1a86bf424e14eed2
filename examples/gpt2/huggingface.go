package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/ckpt"
)

// described is what a config.json of Hugging Face's says of a GPT-2, as far as it matters here.
// What is left out has the value of their GPT2Config.
type described struct {
	Kind       string   `json:"model_type"`
	Layers     int      `json:"n_layer"`
	Heads      int      `json:"n_head"`
	Width      int      `json:"n_embd"`
	Inner      *int     `json:"n_inner"`
	Context    int      `json:"n_positions"`
	Vocab      int      `json:"vocab_size"`
	Activation string   `json:"activation_function"`
	Epsilon    float64  `json:"layer_norm_epsilon"`
	Tied       bool     `json:"tie_word_embeddings"`
	Scaled     bool     `json:"scale_attn_weights"`
	ByLayer    bool     `json:"scale_attn_by_inverse_layer_idx"`
	Models     []string `json:"architectures"`
}

// describe reads the shape of the model in a directory of Hugging Face's.
func describe(dir string) (s shape, err error) {
	name := filepath.Join(dir, "config.json")
	text, err := files.ReadIn(dir, "config.json", 1<<20)
	if err != nil {
		return s, err
	}
	d := described{Layers: 12, Heads: 12, Width: 768, Context: 1024, Vocab: 50257, Activation: "gelu_new", Epsilon: 1e-5,
		Tied: true, Scaled: true}
	if err := json.Unmarshal(text, &d); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case d.Kind != "gpt2":
		err = fmt.Errorf("%s: the model is a %q; this program knows gpt2", name, d.Kind)
	case d.Activation != "gelu_new":
		err = fmt.Errorf("%s: the activation is %q; this program has gelu_new", name, d.Activation)
	case d.Inner != nil && *d.Inner != 4*d.Width:
		err = fmt.Errorf("%s: n_inner is %d, not four times n_embd", name, *d.Inner)
	case d.Epsilon != 1e-5 || !d.Tied || !d.Scaled || d.ByLayer:
		err = fmt.Errorf("%s: layer_norm_epsilon %v, tie_word_embeddings %v, scale_attn_weights %v, scale_attn_by_inverse_layer_idx %v; this program has 1e-05, true, true, false",
			name, d.Epsilon, d.Tied, d.Scaled, d.ByLayer)
	}
	return shape{layers: d.Layers, heads: d.Heads, width: d.Width, context: d.Context, vocab: d.Vocab, openAI: true}, err
}

// begin sets a trainer to the model of -hf. Its names are those of our checkpoints, behind
// "transformer." where it was saved with its head.
func (c *config) begin(ctx context.Context, world *ccl.Comm, t trainer, out io.Writer) error {
	list, err := t.tensors(ctx, false)
	if err != nil {
		return err
	}
	var params []ckpt.Tensor
	for _, x := range list {
		if !strings.HasPrefix(x.Name, "adamw.") { // moments begin as zeros
			params = append(params, x)
		}
	}
	const outer = "transformer."
	o := ckpt.LoadOptions{Convert: true, Partial: true}
	plain, err := ckpt.LoadWith(ctx, world, c.hf, nil, params, o)
	if err == nil && len(plain.Missing) > 0 {
		o.Rename = func(name string) string { return outer + name }
		inner, failed := ckpt.LoadWith(ctx, world, c.hf, nil, params, o)
		switch {
		case failed != nil:
			err = failed
		case len(inner.Missing) > len(plain.Missing): // it has the others by these names
			err = fmt.Errorf("%s has no %s", c.hf, plain.Missing[0])
		case len(inner.Missing) > 0:
			err = fmt.Errorf("%s has no %s%s", c.hf, outer, inner.Missing[0])
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "beginning with the weights in %s\n", c.hf)
	if err := t.restore(ctx, list); err != nil {
		return alone(world, err)
	}
	return nil
}
