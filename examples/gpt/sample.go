package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
)

// sample goes on from a text, on all ranks alike, n tokens at most.
func (tr *trainer) sample(ctx context.Context, from string, n int) (string, error) {
	tokens, err := tr.text.encode(from)
	if err != nil {
		return "", err
	}
	c := tr.cfg
	net := gpt.NewNet[float32](c.Config, 1, tr.split)
	net.K = kernels()
	x := make([]float32, net.Len())
	r := rand.New(rand.NewPCG(c.seed, 3))
	in := make([]int32, c.Context)
	for range n {
		seen := tokens[max(0, len(tokens)-c.Context):]
		clear(in)
		copy(in, seen)
		var logits []float32
		for i, u := range tr.units {
			p, err := tr.model.Params(ctx, i)
			if err != nil {
				return "", err
			}
			p, done, err := tr.withTied(ctx, i, p)
			if err != nil {
				return "", err
			}
			if u == c.Layers+1 {
				logits = net.Logits(p, 0, x)
			} else if _, err := net.Forward(u, p, 0, x, in, nil); err != nil {
				return "", err
			}
			done()
		}
		net.Forget(0)
		at := max(len(seen)-1, 0)
		row := logits[at*c.Vocab : (at+1)*c.Vocab]
		mat.Softmax(row, 1/.8)
		next, left := 0, r.Float32()
		for next < len(tr.text.chars)-1 && left > row[next] {
			left -= row[next]
			next++
		}
		tokens = append(tokens, int32(next))
	}
	var b []byte
	for _, k := range tokens {
		b = append(b, tr.text.chars[k])
	}
	return string(b), nil
}

// finite says that a loss is a number.
func finite(loss float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %v: a smaller -lr, a -clip or a longer -warmup keeps it finite", loss)
	}
	return nil
}
