package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// small is config.json of a small model of a type, with more fields.
func small(kind, more string) string {
	sizes := `"vocab_size":9,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":4`
	if kind == "gpt2" {
		sizes = `"vocab_size":9,"n_embd":8,"n_layer":3,"n_head":4,"n_positions":16`
	}
	if more != "" {
		more = "," + more
	}
	return `{"model_type":"` + kind + `",` + sizes + more + `}`
}

// shapes are the parameters of a model as text, without those of the layers but the first.
func shapes(t *testing.T, config string) string {
	c, err := models.Parse([]byte(config))
	require.NoError(t, err)
	a := hlo.Array{Type: hlo.I32, Dims: []int{2, 5}}
	units, outs, err := c.Model().Params(a, a)
	require.NoError(t, err)
	require.Len(t, units, 5)
	require.Equal(t, []int{2, 5, 9}, outs[4].Dims)
	var b strings.Builder
	for i, u := range units {
		for _, p := range u {
			if i != 2 && i != 3 {
				text, _ := json.Marshal(p.Dims)
				b.WriteString(p.Name + string(text) + "\n")
			}
		}
	}
	return b.String()
}

// The parameters have transformers' names and shapes.
func TestParameters(t *testing.T) {
	const llama = `model.embed_tokens.weight[9,8]
model.layers.0.input_layernorm.weight[8]
model.layers.0.self_attn.q_proj.weight[16,8]
model.layers.0.self_attn.k_proj.weight[8,8]
model.layers.0.self_attn.v_proj.weight[8,8]
model.layers.0.self_attn.o_proj.weight[8,16]
model.layers.0.post_attention_layernorm.weight[8]
model.layers.0.mlp.gate_proj.weight[12,8]
model.layers.0.mlp.up_proj.weight[12,8]
model.layers.0.mlp.down_proj.weight[8,12]
model.norm.weight[8]
lm_head.weight[9,8]
`
	require.Equal(t, llama, shapes(t, small("llama", "")))
	require.Equal(t, llama, shapes(t, small("mistral", "")))
	require.Equal(t, strings.TrimSuffix(llama, "lm_head.weight[9,8]\n"), shapes(t, small("llama", `"tie_word_embeddings":true`)))
	qwen2 := llama
	for name, n := range map[string]string{"q": "16", "k": "8", "v": "8"} {
		old := name + "_proj.weight[" + n + ",8]\n"
		qwen2 = strings.Replace(qwen2, old, old+"model.layers.0.self_attn."+name+"_proj.bias["+n+"]\n", 1)
	}
	require.Equal(t, qwen2, shapes(t, small("qwen2", "")))
	qwen3 := llama
	for _, name := range []string{"q", "k"} {
		at := strings.Index(qwen3, name+"_proj.weight[")
		end := at + strings.Index(qwen3[at:], "\n") + 1
		qwen3 = qwen3[:end] + "model.layers.0.self_attn." + name + "_norm.weight[4]\n" + qwen3[end:]
	}
	require.Equal(t, qwen3, shapes(t, small("qwen3", "")))
	require.Equal(t, `transformer.wte.weight[9,8]
transformer.wpe.weight[16,8]
transformer.h.0.ln_1.weight[8]
transformer.h.0.ln_1.bias[8]
transformer.h.0.attn.c_attn.weight[8,24]
transformer.h.0.attn.c_attn.bias[24]
transformer.h.0.attn.c_proj.weight[8,8]
transformer.h.0.attn.c_proj.bias[8]
transformer.h.0.ln_2.weight[8]
transformer.h.0.ln_2.bias[8]
transformer.h.0.mlp.c_fc.weight[8,32]
transformer.h.0.mlp.c_fc.bias[32]
transformer.h.0.mlp.c_proj.weight[32,8]
transformer.h.0.mlp.c_proj.bias[8]
transformer.ln_f.weight[8]
transformer.ln_f.bias[8]
`, shapes(t, small("gpt2", `"architectures":["GPT2LMHeadModel"]`)))
}

// null is as many heads of keys as of queries, and what a model of transformers does not read changes nothing.
func TestNull(t *testing.T) {
	want := shapes(t, small("llama", `"num_key_value_heads":4`))
	require.Equal(t, want, shapes(t, small("llama", `"num_key_value_heads":null`)))
	require.Equal(t, want, shapes(t, small("mistral", `"num_key_value_heads":null,"attention_bias":true,"mlp_bias":true`)))
	require.Equal(t, shapes(t, small("qwen2", "")), shapes(t, small("qwen2", `"attention_bias":true,"mlp_bias":true`)))
	require.Equal(t, shapes(t, small("qwen3", "")), shapes(t, small("qwen3", `"mlp_bias":true`)))
	require.NotEqual(t, shapes(t, small("qwen3", "")), shapes(t, small("qwen3", `"attention_bias":true`)))
}

// Layers that attend to a window are another kind.
func TestWindows(t *testing.T) {
	for _, tc := range []struct{ kind, more, want string }{
		{"mistral", "", "layer_window layer_window layer_window"},
		{"mistral", `"sliding_window":null`, "layer layer layer"},
		{"llama", `"sliding_window":4`, "layer layer layer"},
		{"qwen2", `"max_window_layers":1`, "layer layer layer"},
		{"qwen2", `"max_window_layers":1,"use_sliding_window":true`, "layer layer_window layer_window"},
		{"qwen3", `"use_sliding_window":true,"layer_types":["full_attention","sliding_attention","full_attention"]`, "layer layer_window layer"},
	} {
		c, err := models.Parse([]byte(small(tc.kind, tc.more)))
		require.NoError(t, err)
		var kinds []string
		m := c.Model()
		for u := range m.Units[1:4] {
			kinds = append(kinds, m.Kind(u+1))
		}
		require.Equal(t, tc.want, strings.Join(kinds, " "), tc)
	}
}

// The same RoPE reads the same from config.json of transformers 4 and 5.
func TestVersions(t *testing.T) {
	for _, tc := range []struct{ four, five string }{
		{``, `"rope_parameters":{"rope_type":"default","rope_theta":10000.0}`},
		{`"rope_theta":500000.0,"rope_scaling":null`, `"rope_parameters":{"rope_type":"default","rope_theta":500000.0}`},
		{`"rope_scaling":{"type":"linear","factor":2.0}`, `"rope_parameters":{"rope_type":"linear","factor":2.0,"rope_theta":10000.0}`},
		{`"rope_theta":500000.0,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}`,
			`"rope_parameters":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3","rope_theta":500000.0}`},
		{`"original_max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn","factor":4.0}`,
			`"rope_parameters":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":64,"rope_theta":10000.0}`},
		{`"original_max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32}`,
			`"rope_parameters":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":64,"rope_theta":10000.0}`},
	} {
		four, err := models.Parse([]byte(small("llama", tc.four)))
		require.NoError(t, err)
		five, err := models.Parse([]byte(small("llama", tc.five)))
		require.NoError(t, err)
		require.Equal(t, five, four)
		require.Equal(t, written(t, five), written(t, four)) // one program
	}
}

// written is the program of a layer.
func written(t *testing.T, c models.Config) string {
	var f hlo.Func
	m, x := c.Model(), f.Arg(hlo.F32, 2, 5, 8)
	a := hlo.Array{Type: hlo.I32, Dims: []int{2, 5}}
	units, _, err := m.Params(a, a)
	require.NoError(t, err)
	p := &nn.Pass{Fn: &f, In: []nn.V{f.Arg(hlo.I32, 2, 5)}, Has: map[string]nn.V{}}
	for _, q := range units[1] {
		p.Has[q.Name] = f.Arg(q.Type, q.Dims...)
	}
	text, err := f.Text("layer", m.Write(p, 1, x))
	require.NoError(t, err)
	return text
}

// What is not supported, or makes no sense, is an error that names the field and the value.
func TestRefused(t *testing.T) {
	for _, tc := range []struct{ kind, more, want string }{
		{"bert", "", `model_type is "bert": there are gpt2, llama, mistral, qwen2, qwen3`},
		{"llama", `"hidden_act":"mish"`, `the activation is "mish": not supported`},
		{"llama", `"quantization_config":{"bits":4}`, `quantization_config is {"bits":4}: not supported`},
		{"llama", `"architectures":["LlamaForSequenceClassification"]`, `architectures are ["LlamaForSequenceClassification"]`},
		{"llama", `"rope_scaling":{"rope_type":"longrope","factor":2.0}`, `rope_type is "longrope": there are default, linear, dynamic, llama3, yarn`},
		{"llama", `"rope_scaling":{"rope_type":"linear"}`, "rope_type is linear, and factor 0: want at least 1"},
		{"llama", `"rope_scaling":{"rope_type":"llama3","factor":2.0}`, "low_freq_factor is 0 and high_freq_factor 0"},
		{"llama", `"rope_parameters":{"full_attention":{"rope_type":"default"}}`, `unknown field "full_attention"`},
		{"llama", `"rope_parameters":{"partial_rotary_factor":0.5}`, "partial_rotary_factor is 0.5: not supported"},
		{"llama", `"partial_rotary_factor":0.5`, "partial_rotary_factor is 0.5: not supported"},
		{"llama", `"rope_scaling":{"rope_type":"linear","factor":2.0},"rope_parameters":{"rope_type":"linear","factor":4.0}`, "leave one of them out"},
		{"llama", `"quantization":{"bits":4}`, `quantization is {"bits":4}: not supported`},
		{"llama", `"head_dim":0,"hidden_size":10`, "hidden_size is 10: not a multiple of num_attention_heads, 4"},
		{"llama", `"rope_theta":-1`, "rope_theta is -1: want more than 1"},
		{"llama", `"rope_parameters":{"rope_type":"yarn","factor":2,"attention_factor":1e400}`, "cannot unmarshal number 1e400"},
		{"llama", `"rope_parameters":{"rope_type":"yarn","factor":1e10,"mscale":1e308,"mscale_all_dim":1}`, "RoPE's frequencies are no numbers"},
		{"llama", `"num_hidden_layers":0`, "num_hidden_layers is 0: want 1 to 1073741824"},
		{"llama", `"num_hidden_layers":1000000`, "the number of layers is 1000000: want at most 16384"},
		{"llama", `"num_key_value_heads":3`, "num_attention_heads is 4: not a multiple of num_key_value_heads, 3"},
		{"llama", `"head_dim":5`, "head_dim is 5: want an even number"},
		{"llama", `"head_dim":-2`, "head_dim is -2: want 1 to"},
		{"llama", `"pad_token_id":9`, "pad_token_id is 9: vocab_size is 9"},
		{"llama", `"pad_token_id":-10`, "pad_token_id is -10: vocab_size is 9"},
		{"llama", `"rms_norm_eps":0`, "the epsilon of norms is 0"},
		{"llama", `"attention_dropout":1.0`, "a rate of dropout is 1"},
		{"llama", `"hidden_size":"8"`, "json: cannot unmarshal string"},
		{"mistral", `"sliding_window":0`, "sliding_window is 0: want 1 to"},
		{"mistral", `"layer_types":["full_attention","full_attention","full_attention"]`, "not supported in a mistral"},
		{"qwen2", `"layer_types":["full_attention"]`, "layer_types has 1 layers: num_hidden_layers is 3"},
		{"qwen3", `"layer_types":["full_attention","chunked_attention","full_attention"]`, `layer_types has "chunked_attention" for layer 1 of a qwen3`},
		{"qwen2", `"layer_types":["full_attention","sliding_attention","full_attention"]`, `layer_types has "sliding_attention" for layer 1 of a qwen2`},
		{"gpt2", `"n_embd":9`, "n_embd is 9: not a multiple of n_head, 4"},
		{"gpt2", `"hidden_size":16`, "hidden_size is 16: not supported"},
		{"gpt2", `"num_hidden_layers":2`, "num_hidden_layers is 2: not supported"},
		{"gpt2", `"scale_attn_by_inverse_layer_idx":true`, "scale_attn_by_inverse_layer_idx is true: not supported"},
		{"gpt2", `"initializer_range":-1`, "initializer_range is -1: want a number from 0 to below 1"},
		{"qwen3", `"initializer_range":1e300`, "initializer_range is 1e+300"},
		{"gpt2", `"add_cross_attention":true`, "add_cross_attention is true: not supported"},
	} {
		_, err := models.Parse([]byte(small(tc.kind, tc.more)))
		require.ErrorContains(t, err, tc.want, tc)
	}
	_, err := models.Parse([]byte("{"))
	require.Error(t, err)
	_, err = models.Read(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What Write has written reads the same; Read names the file in its errors.
func TestWrite(t *testing.T) {
	for _, tc := range [][2]string{{"gpt2"}, {"llama"}, {"mistral"}, {"qwen2"}, {"qwen3"}, {"mistral", `"sliding_window":null`},
		{"qwen2", `"use_sliding_window":true,"max_window_layers":0`}, {"llama", `"pad_token_id":0`}} {
		dir := t.TempDir()
		c, err := models.Parse([]byte(small(tc[0], tc[1])))
		require.NoError(t, err)
		require.NoError(t, models.Write(dir, c))
		again, err := models.Read(dir)
		require.NoError(t, err)
		require.Equal(t, c, again)
	}
	dir := t.TempDir()
	require.NoError(t, models.Write(dir, models.NewGPT2()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"t5"}`), 0o666))
	_, err := models.Read(dir)
	require.ErrorContains(t, err, filepath.Join(dir, "config.json")+`: model_type is "t5"`)
	bad := models.NewLlama()
	bad.Heads = 0
	require.ErrorContains(t, models.Write(dir, bad), "num_attention_heads is 0")
}

// A Config that a program has made is filled in by Model as by Parse, and stays as it is; a wrong one is an error of Params.
func TestMade(t *testing.T) {
	a := hlo.Array{Type: hlo.I32, Dims: []int{1, 2}}
	llama := models.NewLlama()
	llama.Layers, llama.Width, llama.Heads = 1, 64, 4
	units, outs, err := llama.Model().Params(a, a)
	require.NoError(t, err)
	require.Equal(t, []int{64, 64}, units[1][2].Dims)
	require.Equal(t, []int{1, 2, 32000}, outs[2].Dims)
	require.Zero(t, llama.HeadDim)
	gpt2 := models.NewGPT2()
	for want, c := range map[string]models.Config{"num_attention_heads is 0": llama, "n_head is 0": gpt2} {
		llama.Heads, gpt2.Heads = 0, 0
		_, _, err := c.Model().Params(a, a)
		require.ErrorContains(t, err, want)
	}
}

// Models say how long rows are that they generate, where that is bounded.
func TestRoom(t *testing.T) {
	for _, tc := range []struct {
		kind, more string
		want       int
	}{{"gpt2", "", 16}, {"llama", "", 0}, {"qwen2", `"rope_scaling":{"type":"dynamic","factor":2.0},"max_position_embeddings":99`, 99}} {
		c, err := models.Parse([]byte(small(tc.kind, tc.more)))
		require.NoError(t, err)
		require.Equal(t, tc.want, c.Model().Room)
	}
}

func TestRename(t *testing.T) {
	r := models.Rename([]string{"wte.weight", "h.0.ln_1.weight", "model.norm.weight"})
	require.Equal(t, "wte.weight", r("transformer.wte.weight"))
	require.Equal(t, "h.0.ln_1.weight", r("transformer.h.0.ln_1.weight"))
	require.Equal(t, "model.norm.weight", r("model.norm.weight"))
	require.Equal(t, "lm_head.weight", r("lm_head.weight"))
}

// More tokens than a GPT-2 has positions are refused, when it is written.
func TestContext(t *testing.T) {
	c, err := models.Parse([]byte(small("gpt2", "")))
	require.NoError(t, err)
	require.Equal(t, 16, c.Context())
	require.Equal(t, 9, c.Words())
	require.Equal(t, 32000, models.NewLlama().Words())
	a := hlo.Array{Type: hlo.I32, Dims: []int{2, 17}}
	_, _, err = c.Model().Params(a, a)
	require.ErrorContains(t, err, "17 tokens: the model has 16 positions")
}

// Whatever config.json is, it is a model whose parameters have shapes, or an error.
func FuzzConfig(f *testing.F) {
	for _, kind := range []string{"gpt2", "llama", "mistral", "qwen2", "qwen3"} {
		f.Add([]byte(small(kind, "")))
	}
	f.Add([]byte(small("llama", `"rope_scaling":{"type":"yarn","factor":2.0,"mscale":1.0,"mscale_all_dim":1.0,"beta_fast":2,"attention_factor":0.5}`)))
	f.Add([]byte(small("qwen2", `"use_sliding_window":true,"sliding_window":3,"layer_types":["full_attention","sliding_attention","full_attention"]`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := models.Parse(text)
		if err != nil {
			return
		}
		m := c.Model()
		m.Units = m.Units[:1] // writing more takes long
		a := hlo.Array{Type: hlo.I32, Dims: []int{1, 2}}
		_, _, err = m.Params(a, a)
		if err != nil && !strings.Contains(err.Error(), "positions") {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
