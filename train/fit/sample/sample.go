// Package sample chooses tokens by their logits, as transformers' generate does.
package sample

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Options say how a token is chosen. The zero value takes the likeliest.
type Options struct {
	// Temperature divides logits; 0 takes the likeliest token, the first of equals.
	Temperature float64
	// TopK leaves so many of the likeliest tokens, and those that are as likely as the last of them; 0: all.
	TopK int
	// TopP leaves the likeliest tokens until their probabilities add up to it; 0 or 1: all.
	TopP float64
}

// Check says what is wrong with o.
func (o Options) Check() error {
	if !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0) || o.TopK < 0 || !(o.TopP >= 0 && o.TopP <= 1) {
		return fmt.Errorf("sample: temperature %v, top-k %d, top-p %v: want at least 0, at least 0, and 0 to 1", o.Temperature, o.TopK, o.TopP)
	}
	return nil
}

// Likeliest is the first of the largest. NaN is never chosen, unless all are.
func Likeliest(logits []float32) int {
	best := 0
	for i, x := range logits {
		if x > logits[best] || logits[best] != logits[best] {
			best = i
		}
	}
	return best
}

// candidate is a token that may be chosen.
type candidate struct {
	token int
	logit float64
}

// Token chooses one. It is a function of the logits and of what rnd has next.
func (o Options) Token(logits []float32, rnd *rand.Rand) int {
	if o.Temperature == 0 || len(logits) < 2 {
		return Likeliest(logits)
	}
	list := o.left(logits)
	sum := 0.
	weights := make([]float64, len(list))
	for i, c := range list {
		weights[i] = math.Exp(c.logit)
		sum += weights[i]
	}
	if o.TopP > 0 && o.TopP < 1 {
		cut, before := len(list), 0.
		for i, w := range weights { // the token that passes TopP stays
			if before >= o.TopP*sum {
				cut = i
				break
			}
			before += w
		}
		list, sum = list[:cut], before
		if cut == len(weights) {
			sum = before
		}
	}
	at := rnd.Float64() * sum
	for i := range list {
		if at -= weights[i]; at < 0 {
			return list[i].token
		}
	}
	return list[len(list)-1].token
}

// left are the tokens that TopK leaves, the likeliest first, with logits divided by the temperature: by how much they
// are less than the largest, so that no quotient is too large, whatever the temperature.
func (o Options) left(logits []float32) []candidate {
	list, most := make([]candidate, 0, len(logits)), logits[Likeliest(logits)]
	for i, x := range logits {
		c := candidate{i, (float64(x) - float64(most)) / o.Temperature}
		if x == most { // infinite, too
			c.logit = 0
		}
		if x == x && !math.IsInf(float64(x), -1) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return []candidate{{Likeliest(logits), 0}}
	}
	order := func(a, b candidate) int { return cmp.Or(cmp.Compare(b.logit, a.logit), a.token-b.token) }
	if o.TopK == 0 || o.TopK >= len(list) {
		slices.SortFunc(list, order)
		return list
	}
	// A few of very many: find the last one first.
	top := make([]float64, 0, o.TopK)
	for _, c := range list {
		at, _ := slices.BinarySearchFunc(top, c.logit, func(a, b float64) int { return cmp.Compare(b, a) })
		if at < o.TopK {
			if len(top) == o.TopK {
				top = top[:len(top)-1]
			}
			top = slices.Insert(top, at, c.logit)
		}
	}
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.logit < top[len(top)-1] })
	slices.SortFunc(list, order)
	return list
}
