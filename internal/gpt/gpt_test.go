package gpt_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpt"
)

// run is the loss of a batch, and, if g is not nil, the gradients added to it.
func run[T gpt.Float](t *testing.T, n *gpt.Net[T], p, g [][][]T, tokens, targets []int32) (loss float64) {
	x := make([]T, n.Len())
	for u := range p {
		l, err := n.Forward(u, p[u], 0, x, tokens, targets)
		require.NoError(t, err)
		loss += l
	}
	if g != nil {
		for u := len(p) - 1; u >= 0; u-- {
			require.NoError(t, n.Backward(u, p[u], g[u], 0, x, tokens, targets))
		}
	}
	return loss
}

// begun are the parameters of a model before the first step, and gradients, all zero.
func begun[T gpt.Float](c gpt.Config) (p, g [][][]T) {
	for u, lens := range c.Units(1) {
		p, g = append(p, gpt.Init[T](c, u, 1)), append(g, nil)
		for _, l := range lens {
			g[u] = append(g[u], make([]T, l))
		}
	}
	return p, g
}

func batch(c gpt.Config, rows int) (tokens, targets []int32) {
	r := rand.New(rand.NewPCG(3, 4))
	for range rows * c.Context {
		tokens, targets = append(tokens, int32(r.IntN(c.Vocab))), append(targets, int32(r.IntN(c.Vocab)))
	}
	return tokens, targets
}

// The gradients of all parameters against finite differences in float64, with a head of its own and a tied one.
func TestGradients(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := gpt.Config{Vocab: 7, Context: 5, Width: 6, Heads: 2, Layers: 2, Tied: tied}
		tokens, targets := batch(c, 2)
		n := gpt.NewNet[float64](c, 2, nil)
		p, g := begun[float64](c)
		r := rand.New(rand.NewPCG(1, 2))
		for u := range p {
			for j := range p[u] {
				for i := range p[u][j] {
					p[u][j][i] += .3 * r.NormFloat64() // so that every part matters
				}
			}
		}
		head := len(p) - 1
		of := append([][][]float64{}, g...) // the gradients as run adds them up
		if tied {
			p[head] = append(p[head], p[0][0])
			of[head] = append(g[head], make([]float64, len(p[0][0])))
		}
		run(t, n, p, of, tokens, targets)
		const h = 1e-5
		checked := 0
		for u := range g {
			for j := range g[u] {
				for i := range g[u][j] {
					x := p[u][j][i]
					p[u][j][i] = x + h
					more := run(t, gpt.NewNet[float64](c, 2, nil), p, nil, tokens, targets)
					p[u][j][i] = x - h
					less := run(t, gpt.NewNet[float64](c, 2, nil), p, nil, tokens, targets)
					p[u][j][i] = x
					got := g[u][j][i]
					if tied && u == 0 && j == 0 {
						got += of[head][1][i]
					}
					require.InDelta(t, (more-less)/(2*h), got, 1e-8, "tied %t, unit %d, parameter %s, element %d", tied, u, c.Names(u)[j], i)
					checked++
				}
			}
		}
		require.Equal(t, c.Params(), checked)
	}
}

// The talks' GPT-2.
func TestParams(t *testing.T) {
	c := gpt.Config{Vocab: 65, Context: 1024, Width: 768, Heads: 12, Layers: 12}
	require.Equal(t, 85_790_208+65*768, c.Params())
	c.Tied = true // as there
	require.Equal(t, 85_790_208, c.Params())
	tensors := 0
	for _, unit := range c.Units(1) {
		tensors += len(unit)
	}
	require.Equal(t, 75, tensors)
	first := gpt.NewNet[float32](gpt.Config{Vocab: 65, Context: 8, Width: 16, Heads: 2, Layers: 2}, 3, nil)
	tokens, targets := batch(first.Config, 3)
	p, _ := begun[float32](first.Config)
	require.InDelta(t, math.Log(65), run(t, first, p, nil, tokens, targets), .1, "it knows nothing yet")
}
