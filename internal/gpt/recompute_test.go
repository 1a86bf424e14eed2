package gpt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpt"
)

// Losses and gradients have the same bits, with several micro batches between forward and backward, and after one that is
// forgotten; what is kept is a block, and the inputs of the others.
func TestRecompute(t *testing.T) {
	const rows, micros = 2, 3
	c := gpt.Config{Vocab: 7, Context: 20, Width: 8, Heads: 2, Layers: 4}
	compute := func(n *gpt.Net[float32]) (losses []float64, g [][][]float32) {
		p, g := begun[float32](c)
		tokens, targets := batch(c, rows*micros)
		part := func(x []int32, k int) []int32 { return x[k*rows*c.Context:][:rows*c.Context] }
		x := make([]float32, n.Len())
		forward := func(k int) {
			for u := range p {
				l, err := n.Forward(u, p[u], k, x, part(tokens, k), part(targets, k))
				require.NoError(t, err)
				if u == len(p)-1 {
					losses = append(losses, l)
				}
			}
		}
		for range 2 {
			forward(0) // as in a validation
			n.Forget(0)
			for k := range micros {
				forward(k)
			}
			for k := range micros {
				for u := len(p) - 1; u >= 0; u-- {
					require.NoError(t, n.Backward(u, p[u], g[u], k, x, part(tokens, k), part(targets, k)))
				}
			}
		}
		return losses, g
	}
	all := gpt.NewNet[float32](c, rows, nil)
	light := gpt.NewNet[float32](c, rows, nil)
	light.Recompute()
	losses, grads := compute(all)
	again, same := compute(light)
	require.Equal(t, losses, again)
	require.Equal(t, grads, same)
	const n = rows * 20
	block := n*8*(2+2+3+1) + 2*n + n*2*20 + 3*4*8*n // norms, qkv, y; rs; weights of attention; the MLP
	head := n*8*2 + n + n*7
	require.Equal(t, micros*(c.Layers*block+head), all.Activations())
	require.Equal(t, block+micros*(c.Layers*n*8+head), light.Activations())
}
