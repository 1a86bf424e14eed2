package lora_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/fit/lora"
	"github.com/goccl/goccl/xla/nn"
)

// What modules have adapters is as peft decides.
func TestTargets(t *testing.T) {
	const q, v, head, mlp = "model.layers.3.self_attn.q_proj", "model.layers.12.self_attn.v_proj", "lm_head", "model.layers.3.mlp.up_proj"
	const expert, bare = "model.layers.3.experts.12.w1", "layers.3.w1"
	for _, tc := range []struct {
		text string
		want []string
	}{
		{`{"target_modules":["q_proj","v_proj"]}`, []string{q, v}},
		{`{"target_modules":["proj"]}`, nil},
		{`{"target_modules":["self_attn.q_proj"]}`, []string{q}},
		{`{"target_modules":".*\\.self_attn\\.[qv]_proj"}`, []string{q, v}},
		{`{"target_modules":"q_proj"}`, nil},
		{`{"target_modules":"all-linear"}`, []string{q, v, mlp, expert, bare}},
		{`{"target_modules":["q_proj","v_proj"],"exclude_modules":["q_proj"]}`, []string{v}},
		{`{"target_modules":["q_proj","v_proj"],"layers_to_transform":12}`, []string{v}},
		{`{"target_modules":["q_proj","v_proj"],"layers_to_transform":[3]}`, []string{q}},
		{`{"target_modules":["q_proj","` + v + `"],"layers_to_transform":[3]}`, []string{q, v}},
		{`{"target_modules":["w1"],"layers_to_transform":[3]}`, []string{expert}},
		{`{"target_modules":["w1"],"layers_to_transform":[12]}`, nil},
		{`{"target_modules":["w1"],"layers_to_transform":[12],"layers_pattern":"experts"}`, []string{expert}},
		{`{"target_modules":["w1","q_proj"],"layers_to_transform":3,"layers_pattern":["blocks","lay(er)s"]}`, []string{q, expert, bare}},
		{`{"target_modules":["q_proj"],"layers_to_transform":3,"layers_pattern":["h"]}`, nil},
		{`{"target_modules":["q_proj"],"layers_to_transform":3,"layers_pattern":[]}`, []string{q}},
		{`{"target_modules":"All-Linear","exclude_modules":"all-linear"}`, []string{q, v, mlp, expert, bare}},
		{`{"target_modules":"all-linear","exclude_modules":".*(proj|w1)"}`, nil},
		{`{"target_modules":["q_proj"],"layers_to_transform":null,"use_dora":false,"rank_pattern":{},"modules_to_save":null}`, []string{q}},
	} {
		c, err := lora.Parse([]byte(tc.text))
		require.NoError(t, err, tc.text)
		o, err := c.Option()
		require.NoError(t, err)
		var got []string
		for _, name := range []string{q, v, head, mlp, expert, bare} {
			if o.Has(name) {
				got = append(got, name)
			}
		}
		require.Equal(t, tc.want, got, tc.text)
	}
}

func TestScale(t *testing.T) {
	c := lora.New()
	c.Rank, c.Alpha, c.Targets.List = 16, 32, []string{"q_proj"}
	o, err := c.Option()
	require.NoError(t, err)
	require.InDelta(t, 2, o.Scale, 0)
	c.Stable = true
	o, err = c.Option()
	require.NoError(t, err)
	require.InDelta(t, 8, o.Scale, 0)
}

// A name that is that of no module with an adapter is found: peft passes over it.
func TestUnmatched(t *testing.T) {
	c := lora.New()
	params := [][]nn.Param{{{Name: "model.embed_tokens.weight"}}, {{Name: "model.layers.0.up.weight"},
		{Name: "model.layers.0.up.lora_A.weight", Adapter: true}, {Name: "model.layers.0.up.lora_B.weight", Adapter: true}}}
	for target, want := range map[string]bool{"up": true, "layers.0.up": true, "model.layers.0.up": true, "p": false,
		"embed_tokens": false, "lm_head": false, "0": false} {
		c.Targets.List = []string{target}
		require.Equal(t, want, len(c.Unmatched(params)) == 0, target)
	}
	c.Targets = lora.Names{Pattern: "all-linear"}
	require.Empty(t, c.Unmatched(params))
}

// Modules have the rank and the alpha of the first pattern that fits, in the order of the file, as in peft.
func TestPatterns(t *testing.T) {
	const text = `{"target_modules":["q_proj","v_proj","o_proj"],"r":4,"lora_alpha":8,` +
		`"rank_pattern":{"layers\\.1\\..*q_proj":2,"q_proj":16,"proj":1,"q_proj":32},"alpha_pattern":{"model.layers.0.self_attn.v_proj":3.5}}`
	for _, stable := range []bool{false, true} {
		c, err := lora.Parse([]byte(text))
		require.NoError(t, err)
		c.Stable = stable
		o, err := c.Option()
		require.NoError(t, err)
		for name, want := range map[string][2]float64{
			"model.layers.0.self_attn.q_proj": {32, 8}, "model.layers.1.self_attn.q_proj": {2, 8}, "q_proj": {32, 8},
			"model.layers.0.self_attn.v_proj": {4, 3.5}, "model.layers.1.self_attn.v_proj": {4, 8}, "xq_proj": {4, 8},
		} {
			rank, scale := o.Of(name)
			by := want[0]
			if stable {
				by = math.Sqrt(by)
			}
			require.Equal(t, int(want[0]), rank, name)
			require.InDelta(t, want[1]/by, scale, 1e-15, name)
		}
	}
}

// A file that peft 0.21.2 has written with its defaults is read: all fields of which nothing here depends.
func TestDefaults(t *testing.T) {
	c, err := lora.Parse([]byte(`{"task_type":"CAUSAL_LM","peft_type":"LORA","auto_mapping":null,"peft_version":"0.21.2","base_model_name_or_path":null,
		"revision":null,"inference_mode":false,"r":8,"target_modules":["q"],"exclude_modules":null,"lora_alpha":8,"lora_dropout":0.0,
		"fan_in_fan_out":false,"bias":"none","use_rslora":false,"modules_to_save":null,"init_lora_weights":true,"layers_to_transform":null,
		"layers_pattern":null,"rank_pattern":{},"alpha_pattern":{},"megatron_config":null,"megatron_core":"megatron.core",
		"trainable_token_indices":null,"loftq_config":{},"eva_config":null,"corda_config":null,"lora_ga_config":null,"use_dora":false,
		"velora_config":null,"alora_invocation_tokens":null,"use_qalora":false,"qalora_group_size":16,"monteclora_config":null,
		"layer_replication":null,"lora_bias":false,"target_parameters":null,"use_bdlora":null,"arrow_config":null,"kasa_config":null,
		"ensure_weight_tying":false}`))
	require.NoError(t, err)
	want := lora.New()
	want.Targets.List = []string{"q"}
	require.Equal(t, want, c)
}

// What is written is read; what is not supported is named.
func TestFile(t *testing.T) {
	c, dir := lora.New(), t.TempDir()
	require.EqualError(t, c.Write(dir), "target_modules names no module")
	c.Rank, c.Dropout, c.Targets.List, c.Layers, c.Blocks.List = 4, .1, []string{"q"}, lora.Layers{1, 2}, []string{"h"}
	c.Ranks, c.Alphas = lora.Patterns{{"v", 3}, {`"a`, 2}}, lora.Patterns{{"v", .5}}
	require.NoError(t, c.Write(dir))
	got, err := lora.Read(dir)
	require.NoError(t, err)
	require.Equal(t, c, got)
	for text, want := range map[string]string{
		`{`: "unexpected end of JSON",
		`{"target_modules":["q"],"use_dora":true}`:                              "use_dora is true, which is not supported",
		`{"target_modules":["q"],"rank_pattern":{"a":4.5}}`:                     `rank_pattern has 4.5 for "a"`,
		`{"target_modules":["q"],"rank_pattern":{"a":0}}`:                       `rank_pattern has 0 for "a"`,
		`{"target_modules":["q"],"rank_pattern":{"(":4}}`:                       "rank_pattern: error parsing regexp",
		`{"target_modules":["q"],"alpha_pattern":{"a":"4"}}`:                    "cannot unmarshal",
		`{"target_modules":["q"],"alpha_pattern":[4]}`:                          "cannot unmarshal",
		`{"target_modules":["q"],"modules_to_save":["lm_head"]}`:                `modules_to_save is ["lm_head"], which is not supported`,
		`{"target_modules":["q"],"init_lora_weights":"pissa"}`:                  `init_lora_weights is "pissa", which is not supported`,
		`{"target_modules":["q"],"use_bdlora":{"nblocks":2}}`:                   `use_bdlora is {"nblocks":2}, which is not supported`,
		`{"target_modules":["q"],"of_tomorrow":1}`:                              "of_tomorrow is 1, which is not supported",
		`{"target_modules":["q"],"layers_pattern":"h"}`:                         "layers_pattern is there without layers_to_transform",
		`{"target_modules":["q"],"layers_pattern":"(","layers_to_transform":1}`: "layers_pattern: error parsing regexp",
		`{"target_modules":"q","layers_to_transform":[1]}`:                      `layers_to_transform is [1], and target_modules "q": want a list`,
		`{"target_modules":["q"],"exclude_modules":"("}`:                        "exclude_modules: error parsing regexp",
		`{"target_modules":["q"],"bias":"all"}`:                                 `bias is "all"; there is none`,
		`{"target_modules":["q"],"peft_type":"IA3"}`:                            `peft_type is "IA3"; there is LORA`,
		`{"target_modules":["q"],"r":0}`:                                        "r is 0: want at least 1",
		`{"target_modules":["q"],"lora_dropout":1}`:                             "lora_dropout is 1: want 0 to below 1",
		`{"target_modules":"(?=q)"}`:                                            "target_modules: error parsing regexp",
		`{"target_modules":["q"],"layers_to_transform":"x"}`:                    "cannot unmarshal",
	} {
		_, err := lora.Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"peft_type":"LORA","r":8,"lora_alpha":16,"target_modules":["q_proj"],"layers_to_transform":[1]}`))
	f.Add([]byte(`{"target_modules":".*q_proj","exclude_modules":null}`))
	f.Add([]byte(`{"target_modules":["q"],"layers_to_transform":1,"layers_pattern":"h","rank_pattern":{"a":1,"b":2},"alpha_pattern":{"a":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := lora.Parse(text)
		if err != nil {
			return
		}
		o, err := c.Option()
		if err != nil {
			t.Fatal(err)
		}
		o.Has("model.layers.3.self_attn.q_proj")
		if rank, _ := o.Of("model.layers.3.self_attn.q_proj"); rank < 1 {
			t.Fatalf("rank %d", rank)
		}
	})
}
