package models

import "fmt"

// newQwen2 is a Llama with biases of queries, keys and values.
func newQwen2() Config {
	window := 4096
	return &Llama{ModelType: "qwen2", Classes: []string{"Qwen2ForCausalLM"}, Vocab: 151936, Width: 4096, Inner: 22016,
		Layers: 32, Heads: 32, KVHeads: 32, Positions: 32768, Eps: 1e-6, Act: "silu", Range: .02, Window: &window,
		MaxWindowLayers: 28}
}

// newQwen3 is a Llama with norms of queries and keys.
func newQwen3() Config {
	c := newQwen2().(*Llama)
	c.ModelType, c.Classes, c.HeadDim = "qwen3", []string{"Qwen3ForCausalLM"}, 128
	return c
}

// newMistral is a Llama whose tokens attend to a window.
func newMistral() Config {
	window := 4096
	return &Llama{ModelType: "mistral", Classes: []string{"MistralForCausalLM"}, Vocab: 32000, Width: 4096, Inner: 14336,
		Layers: 32, Heads: 32, KVHeads: 8, Positions: 4096 * 32, Eps: 1e-6, Act: "silu", Range: .02, Window: &window}
}

// windows checks what is said of windows.
func (c *Llama) windows() error {
	if c.ModelType == "llama" {
		c.Window = nil // which has none, whatever config.json says
	}
	if c.Window != nil && (*c.Window < 1 || *c.Window > most) {
		return fmt.Errorf("sliding_window is %d: want 1 to %d, or null", *c.Window, most)
	}
	if c.LayerTypes == nil {
		return nil
	}
	if c.ModelType == "mistral" {
		return fmt.Errorf("layer_types is %s: not supported in a %s", short(c.LayerTypes), c.ModelType)
	}
	if len(c.LayerTypes) != c.Layers {
		return fmt.Errorf("layer_types has %d layers: num_hidden_layers is %d", len(c.LayerTypes), c.Layers)
	}
	for i, t := range c.LayerTypes {
		if t != "full_attention" && (t != "sliding_attention" || c.window(i) == 0) {
			return fmt.Errorf("layer_types has %q for layer %d of a %s: not supported there", t, i, c.ModelType)
		}
	}
	return nil
}

// window is how many tokens a token of a layer attends to, 0 if all.
func (c *Llama) window(layer int) int {
	if c.Window == nil || c.ModelType != "mistral" && (!c.UseWindow || c.LayerTypes == nil && layer < c.MaxWindowLayers ||
		c.LayerTypes != nil && c.LayerTypes[layer] == "full_attention") {
		return 0
	}
	return *c.Window
}
