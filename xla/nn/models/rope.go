package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Rope is how positions turn queries and keys (Su et al. 2021), and how a model is stretched to more
// positions than it was first trained with. Fields that a type does not name are not used by it.
type Rope struct {
	// Type is default, linear (Chen et al. 2023), dynamic (NTK-aware, by length), llama3 or yarn (Peng et al. 2023).
	Type   string  `json:"rope_type"`
	Theta  float64 `json:"rope_theta,omitempty"`
	Factor float64 `json:"factor,omitempty"`
	// Low and High are of llama3: wavelengths of more than Old/Low tokens are stretched, those of less than
	// Old/High are not.
	Low  float64 `json:"low_freq_factor,omitempty"`
	High float64 `json:"high_freq_factor,omitempty"`
	// Old is the number of positions before the stretching, of llama3 and yarn.
	Old float64 `json:"original_max_position_embeddings,omitempty"`
	// The rest is yarn's.
	AttentionFactor *float64 `json:"attention_factor,omitempty"`
	Fast            float64  `json:"beta_fast,omitempty"`
	Slow            float64  `json:"beta_slow,omitempty"`
	MScale          float64  `json:"mscale,omitempty"`
	MScaleAll       float64  `json:"mscale_all_dim,omitempty"`
	Truncate        *bool    `json:"truncate,omitempty"`
}

// UnmarshalJSON refuses fields that it does not know: they would change the frequencies.
func (r *Rope) UnmarshalJSON(text []byte) error {
	type plain Rope
	p := struct {
		*plain
		Old       string   `json:"type"` // transformers before 4.43
		Partial   *float64 `json:"partial_rotary_factor"`
		Finetuned bool     `json:"finetuned"`
	}{plain: (*plain)(r)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("rope_parameters or rope_scaling: %w", err)
	}
	if p.Partial != nil && *p.Partial != 1 {
		return fmt.Errorf("partial_rotary_factor is %v: not supported", *p.Partial)
	}
	r.Type = cmp.Or(r.Type, p.Old)
	return nil
}

// rope fills in c.Rope, in transformers 5's form, and checks it.
func (c *Llama) rope() error {
	r := *cmp.Or(c.Rope, c.Scaling, &Rope{})
	if c.Scaling != nil && !reflect.DeepEqual(*c.Scaling, r) {
		return fmt.Errorf("rope_scaling is %s and rope_parameters %s: leave one of them out", short(c.Scaling), short(r))
	}
	c.Rope = &r
	r.Type, r.Theta = cmp.Or(r.Type, "default"), cmp.Or(r.Theta, c.Theta, 10000)
	c.Theta, c.Scaling = r.Theta, nil
	if r.Type != "default" {
		c.Scaling = &r
	}
	old := r.Type == "llama3" || r.Type == "yarn"
	if old {
		r.Old, c.Old = cmp.Or(c.Old, r.Old, float64(c.Positions)), 0
	}
	switch {
	case !slices.Contains([]string{"default", "linear", "dynamic", "llama3", "yarn"}, r.Type):
		return fmt.Errorf("rope_type is %q: there are default, linear, dynamic, llama3, yarn", r.Type)
	case !(r.Theta > 1):
		return fmt.Errorf("rope_theta is %v: want more than 1", r.Theta)
	case r.Type != "default" && !(r.Factor >= 1):
		return fmt.Errorf("rope_type is %s, and factor %v: want at least 1", r.Type, r.Factor)
	case r.Type == "llama3" && !(r.Low > 0 && r.High > r.Low):
		return fmt.Errorf("low_freq_factor is %v and high_freq_factor %v: want 0 < low < high", r.Low, r.High)
	case r.Type == "dynamic" && c.HeadDim < 4:
		return fmt.Errorf("head_dim is %d: want at least 4 with rope_type dynamic", c.HeadDim)
	case old && !(r.Old > 0) || r.Fast < 0 || r.Slow < 0:
		return fmt.Errorf("original_max_position_embeddings is %v, beta_fast %v, beta_slow %v", r.Old, r.Fast, r.Slow)
	}
	freq, scale := r.frequencies(c.HeadDim, c.Positions, c.Positions)
	for _, x := range append(freq, scale) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("RoPE's frequencies are no numbers by %s", short(r))
		}
	}
	return nil
}

// frequencies are those of each pair of a head with dim elements, and by what sines and cosines are
// multiplied, in a model for so many positions, where so many tokens come at once.
func (r *Rope) frequencies(dim, positions, length int) (freq []float64, scale float64) {
	theta, scale := r.Theta, 1.
	if r.Type == "dynamic" && length > positions {
		k := r.Factor*float64(length)/float64(positions) - (r.Factor - 1)
		theta *= math.Pow(k, float64(dim)/float64(dim-2))
	}
	freq = make([]float64, dim/2)
	for i := range freq {
		freq[i] = math.Pow(theta, -2*float64(i)/float64(dim))
	}
	switch r.Type {
	case "linear":
		for i := range freq {
			freq[i] /= r.Factor
		}
	case "llama3":
		for i, f := range freq {
			k := min(max((r.Old*f/(2*math.Pi)-r.Low)/(r.High-r.Low), 0), 1) // 1: a short wave
			freq[i] = (1-k)*f/r.Factor + k*f
		}
	case "yarn":
		scale = r.yarn(freq, dim)
	}
	return freq, scale
}

func (r *Rope) yarn(freq []float64, dim int) (scale float64) {
	fast, slow := cmp.Or(r.Fast, 32), cmp.Or(r.Slow, 1)
	pair := func(turns float64) float64 { // the one that turns so often in the old positions
		return float64(dim) * math.Log(r.Old/(turns*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	low, high := pair(fast), pair(slow)
	if r.Truncate == nil || *r.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	if low, high = max(low, 0), min(high, float64(dim-1)); low == high {
		high += .001
	}
	for i, f := range freq {
		k := min(max((float64(i)-low)/(high-low), 0), 1)
		freq[i] = f/r.Factor*k + f*(1-k)
	}
	grown := func(m float64) float64 { return .1*m*math.Log(r.Factor) + 1 }
	switch {
	case r.AttentionFactor != nil:
		return *r.AttentionFactor
	case r.MScale != 0 && r.MScaleAll != 0:
		return grown(r.MScale) / grown(r.MScaleAll)
	}
	return grown(1)
}
