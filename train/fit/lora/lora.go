// Package lora reads and writes peft's adapter_config.json: which matrices have adapters (LoRA, Hu et
// al. 2021), and how these are scaled. fit.Trainer reads and writes the adapters themselves.
package lora

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/xla/nn"
)

// file is the name that peft gives it.
const file = "adapter_config.json"

// Config is what adapter_config.json says. New has the values of what it leaves out.
type Config struct {
	Kind string `json:"peft_type"`
	Task string `json:"task_type"`
	// Base is the model that the adapters are for.
	Base string `json:"base_model_name_or_path"`
	// Rank is that of the adapters, and Alpha what their product is scaled by, over Rank or, with
	// Stable (rsLoRA, Kalajdzievski 2023), its root.
	Rank   int     `json:"r"`
	Alpha  float64 `json:"lora_alpha"`
	Stable bool    `json:"use_rslora"`
	// Dropout is the rate at which elements of what goes into an adapter are dropped.
	Dropout float64 `json:"lora_dropout"`
	Bias    string  `json:"bias"`
	// Targets are names of modules, or their ends behind a point; Excluded are not adapted though Targets have them.
	Targets  Names `json:"target_modules"`
	Excluded Names `json:"exclude_modules"`
	// Layers, if there are any, are the only ones with adapters: the first number between points in a
	// module's name. Blocks, if there are any, are what may stand before that number, as regular expressions.
	// Modules that Targets has by their whole names are adapted in any layer.
	Layers Layers `json:"layers_to_transform"`
	Blocks Names  `json:"layers_pattern"`
	// Ranks and Alphas have modules with another rank or alpha than Rank and Alpha.
	Ranks  Patterns `json:"rank_pattern"`
	Alphas Patterns `json:"alpha_pattern"`
	// Turned says that the matrices are [in,out], as GPT-2's are. It is for peft alone.
	Turned bool `json:"fan_in_fan_out"`
}

// Patterns have numbers by modules: the first whose Name is a module's, or its end behind a point.
type Patterns []Pattern

// Pattern is a regular expression, and the number of the modules that it fits.
type Pattern struct {
	Name  string
	Value float64
}

// UnmarshalJSON takes an object of numbers, whose order counts, or null.
func (p *Patterns) UnmarshalJSON(text []byte) error {
	var values map[string]float64
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*p = nil
	d := json.NewDecoder(bytes.NewReader(text))
	for len(*p) < len(values) {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, is := token.(string) // values are none
		has := func(q Pattern) bool { return q.Name == name }
		if is && !slices.ContainsFunc(*p, has) { // of two equal names the value of the last counts, as in Python
			*p = append(*p, Pattern{name, values[name]})
		}
	}
	return nil
}

// MarshalJSON gives what UnmarshalJSON takes.
func (p Patterns) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, q := range p {
		text, err := json.Marshal(map[string]float64{q.Name: q.Value})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, text[1:len(text)-1]...)
	}
	return append(out, '}'), nil
}

// numbers returns a function of a module's name: its number, or other for what no pattern fits.
func (p Patterns) numbers(other float64) (func(module string) float64, error) {
	var all []*regexp.Regexp
	for _, q := range p {
		re, err := regexp.Compile(`^(?:.*\.)?(?:` + q.Name + `)$`)
		if err != nil {
			return nil, err
		}
		all = append(all, re)
	}
	return func(module string) float64 {
		for i, re := range all {
			if re.MatchString(module) {
				return p[i].Value
			}
		}
		return other
	}, nil
}

// New returns peft's defaults.
func New() *Config {
	return &Config{Kind: "LORA", Task: "CAUSAL_LM", Rank: 8, Alpha: 8, Bias: "none"}
}

// Names is a list of names, one regular expression for whole names, or in Targets "all-linear": all but the output's.
type Names struct {
	List    []string
	Pattern string
}

// UnmarshalJSON takes a list or a string.
func (n *Names) UnmarshalJSON(text []byte) error {
	*n = Names{}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte(`"`)) {
		return json.Unmarshal(text, &n.Pattern)
	}
	return json.Unmarshal(text, &n.List)
}

// MarshalJSON gives what UnmarshalJSON takes.
func (n Names) MarshalJSON() ([]byte, error) {
	if n.Pattern != "" {
		return json.Marshal(n.Pattern)
	}
	return json.Marshal(n.List)
}

// everything is what peft calls all linear layers.
const everything = "all-linear"

// all reports whether n is everything. peft does not look at the case.
func (n Names) all() bool { return strings.EqualFold(n.Pattern, everything) }

// has returns whether a module's whole name is one of n, and whether a name of the list is its end.
func (n Names) has() (func(module string) (whole, end bool), error) {
	if n.Pattern == "" {
		return func(module string) (bool, bool) {
			return slices.Contains(n.List, module),
				slices.ContainsFunc(n.List, func(x string) bool { return strings.HasSuffix(module, "."+x) })
		}, nil
	}
	re, err := regexp.Compile(`^(?:` + n.Pattern + `)$`)
	return func(module string) (bool, bool) { return re.MatchString(module), false }, err
}

// Layers are numbers of layers; peft writes one alone as a number.
type Layers []int

// UnmarshalJSON takes a list, a number or null.
func (l *Layers) UnmarshalJSON(text []byte) error {
	var one int
	if err := json.Unmarshal(text, &one); err == nil && string(bytes.TrimSpace(text)) != "null" {
		*l = Layers{one}
		return nil
	}
	return json.Unmarshal(text, (*[]int)(l))
}

// fields are those of peft's file that say nothing of what adapters are, beside those of Config, with values that are
// fine; nil: any. All others must be null, false, 0 or empty: they are for other kinds of adapters.
var fields = map[string][]string{
	"auto_mapping": nil, "peft_version": nil, "revision": nil, "megatron_core": nil, "qalora_group_size": nil,
	"runtime_config": nil, "loftq_config": nil, "inference_mode": nil,
	// The others change the matrices beside which the adapters are.
	"init_lora_weights": {"true", "false", `"gaussian"`, `"orthogonal"`, `"eva"`},
	"eva_config":        nil, // how adapters began
}

// empty are values that ask for nothing.
var empty = []string{"null", "false", "0", `""`, "[]", "{}"}

// Parse reads what is in the file. What cannot be done here is an error that names the field.
func Parse(text []byte) (*Config, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		known[f.Tag.Get("json")] = true
	}
	for name, value := range all {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, err
		}
		is := compact.String()
		fine, other := fields[name]
		if known[name] || other && fine == nil || slices.Contains(fine, is) || slices.Contains(empty, is) {
			continue
		}
		return nil, fmt.Errorf("%s is %.60s, which is not supported", name, is)
	}
	c := New()
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	return c, c.check()
}

func (c *Config) check() error {
	switch {
	case c.Kind != "LORA":
		return fmt.Errorf("peft_type is %q; there is LORA", c.Kind)
	case c.Bias != "none":
		return fmt.Errorf("bias is %q; there is none", c.Bias)
	case c.Rank < 1 || c.Rank > 1<<16:
		return fmt.Errorf("r is %d: want at least 1", c.Rank)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("lora_dropout is %v: want 0 to below 1", c.Dropout)
	case math.IsNaN(c.Alpha) || math.IsInf(c.Alpha, 0):
		return fmt.Errorf("lora_alpha is %v", c.Alpha)
	case len(c.Targets.List) == 0 && c.Targets.Pattern == "":
		return fmt.Errorf("target_modules names no module")
	case c.Targets.Pattern != "" && c.Layers != nil:
		return fmt.Errorf("layers_to_transform is %v, and target_modules %q: want a list of modules", c.Layers,
			c.Targets.Pattern)
	case c.Layers == nil && (c.Blocks.Pattern != "" || len(c.Blocks.List) > 0):
		return fmt.Errorf("layers_pattern is there without layers_to_transform")
	}
	for _, p := range c.Ranks {
		if !(p.Value >= 1 && p.Value <= 1<<16) || p.Value != math.Trunc(p.Value) {
			return fmt.Errorf("rank_pattern has %v for %q: want a whole number from 1 on", p.Value, p.Name)
		}
	}
	for _, p := range c.Alphas {
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			return fmt.Errorf("alpha_pattern has %v for %q", p.Value, p.Name)
		}
	}
	_, err := c.rules()
	return err
}

// Read reads adapter_config.json in dir.
func Read(dir string) (*Config, error) {
	text, err := files.ReadIn(dir, file, 1<<20)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
	}
	return c, nil
}

// Write writes adapter_config.json to dir.
func (c *Config) Write(dir string) error {
	if err := c.check(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, file), append(text, '\n'))
}

// rules are what of a Config is looked up by a module's name.
type rules struct {
	target, excluded func(module string) (whole, end bool)
	layer            []*regexp.Regexp // before the number of a module's layer
	rank, alpha      func(module string) float64
}

// rules compiles what c has of regular expressions.
func (c *Config) rules() (r rules, err error) {
	note := func(field string, failed error) {
		if failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", field, failed)
		}
	}
	var failed error
	if r.target, failed = c.Targets.has(); c.Targets.all() {
		r.target = func(module string) (bool, bool) { return module != "lm_head", false }
	}
	note("target_modules", failed)
	r.excluded, failed = c.Excluded.has()
	note("exclude_modules", failed)
	r.rank, failed = c.Ranks.numbers(float64(c.Rank))
	note("rank_pattern", failed)
	r.alpha, failed = c.Alphas.numbers(c.Alpha)
	note("alpha_pattern", failed)
	before := []string{`^.*?\.[^.]*`}
	if list := append(slices.Clone(c.Blocks.List), c.Blocks.Pattern); len(list) > 1 || list[0] != "" {
		before = nil
		for _, p := range list {
			if p != "" {
				before = append(before, `^(?:.*?\.)?(?:`+p+`)`)
			}
		}
	}
	for _, p := range before {
		re, failed := regexp.Compile(p + `\.(?P<idx>\d+)\.`)
		note("layers_pattern", failed)
		r.layer = append(r.layer, re)
	}
	return r, err
}

// has reports whether a module has an adapter, as peft decides.
func (c *Config) has(r *rules, module string) bool {
	whole, end := r.excluded(module)
	if whole || end {
		return false
	}
	if whole, end = r.target(module); whole || !end || len(c.Layers) == 0 {
		return whole || end
	}
	for _, re := range r.layer {
		if m := re.FindStringSubmatch(module); m != nil {
			n, err := strconv.Atoi(m[re.SubexpIndex("idx")])
			return err == nil && slices.Contains(c.Layers, n)
		}
	}
	return false
}

// Unmatched returns the names of Targets that none of the modules with adapters has, of a model with these parameters
// by unit. peft passes over them. A name may be wrong, or that of an embedding, or of a head that is tied to one.
func (c *Config) Unmatched(params [][]nn.Param) []string {
	return slices.DeleteFunc(slices.Clone(c.Targets.List), func(target string) bool {
		return slices.ContainsFunc(slices.Concat(params...), func(p nn.Param) bool {
			module, is := strings.CutSuffix(p.Name, ".lora_A.weight")
			return is && p.Adapter && (module == target || strings.HasSuffix(module, "."+target))
		})
	})
}

// Option is what a model takes: Model.LoRA.
func (c *Config) Option() (*nn.LoRA, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r, err := c.rules()
	scale := func(rank, alpha float64) float64 {
		if c.Stable {
			rank = math.Sqrt(rank)
		}
		return alpha / rank
	}
	o := &nn.LoRA{Rank: c.Rank, Scale: scale(float64(c.Rank), c.Alpha), Dropout: c.Dropout}
	o.Has = func(module string) bool { return c.has(&r, module) }
	if len(c.Ranks)+len(c.Alphas) > 0 {
		o.Own = func(module string) (int, float64) {
			rank := r.rank(module)
			return int(rank), scale(rank, r.alpha(module))
		}
	}
	return o, err
}
