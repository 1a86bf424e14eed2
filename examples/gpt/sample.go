package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/tp"
)

// sample goes on from a text, n tokens at most, with the same result on all ranks. A rank computes whole sequences; the
// stages of a pipeline take turns.
func (tr *trainer) sample(ctx context.Context, from string, n int) (string, error) {
	tokens, err := tr.text.encode(from)
	if err != nil {
		return "", err
	}
	c := tr.cfg
	net := gpt.NewNet[float32](c.Config, 1, &split{ctx, &tp.Group{Comm: tr.split.g.Comm}})
	net.K = kernels()
	line := tr.mesh.Comm("pp")
	last := line.Size() - 1
	x := make([]float32, net.Len())
	r := rand.New(rand.NewPCG(c.seed, 3))
	in := make([]int32, c.Context)
	for range n {
		seen := tokens[max(0, len(tokens)-c.Context):]
		clear(in)
		copy(in, seen)
		next := []int32{0}
		for stage := range line.Size() {
			if stage == line.Rank() {
				logits, err := tr.forward(ctx, net, x, in)
				if err != nil {
					return "", err
				}
				if stage == last {
					at := max(len(seen)-1, 0)
					next[0] = draw(logits[at*c.Vocab:(at+1)*c.Vocab], len(tr.text.chars), r.Float32())
				}
			}
			if stage < last {
				err = ccl.Broadcast(ctx, line, x, stage)
			} else {
				err = ccl.Broadcast(ctx, line, next, stage)
			}
			if err != nil {
				return "", err
			}
		}
		tokens = append(tokens, next[0])
	}
	var b []byte
	for _, k := range tokens {
		b = append(b, tr.text.chars[k])
	}
	return string(b), nil
}

// forward runs one row through the units of this stage, and returns its logits if the head is one of them.
func (tr *trainer) forward(ctx context.Context, net *gpt.Net[float32], x []float32, in []int32) (logits []float32, err error) {
	defer net.Forget(0)
	for i, u := range tr.units {
		p, err := tr.model.Params(ctx, i)
		if err != nil {
			return nil, err
		}
		p, done, err := tr.withTied(ctx, i, p)
		if err != nil {
			return nil, err
		}
		if u == tr.cfg.Layers+1 {
			logits = net.Logits(p, 0, x)
		} else if _, err := net.Forward(u, p, 0, x, in, nil); err != nil {
			return nil, err
		}
		done()
	}
	return logits, nil
}

// draw chooses one of the first n tokens by their logits, given a random number below 1.
func draw(logits []float32, n int, left float32) (next int32) {
	mat.Softmax(logits, 1/.8)
	for int(next) < n-1 && left > logits[next] {
		left -= logits[next]
		next++
	}
	return next
}

// finite says that a loss is a number.
func finite(loss float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %v: a smaller -lr, a -clip or a longer -warmup keeps it finite", loss)
	}
	return nil
}
