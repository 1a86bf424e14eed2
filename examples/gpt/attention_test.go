package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/goccl/goccl/internal/gpt"
)

// BenchmarkAttention is one row of the presets' attention, forward and backward.
func BenchmarkAttention(b *testing.B) {
	for _, name := range []string{"char", "babygpt", "gpt2-85m"} {
		c := presets[name]
		b.Run(fmt.Sprintf("%s/context-%d", name, c.Context), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			random := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				return x
			}
			c.Vocab = 2
			n := gpt.NewNet[float32](c, 1, nil)
			n.K = kernels()
			size := c.Context * c.Width
			qkv, dy, y, dqkv, att := random(3*size), random(size), random(size), random(3*size), random(c.Heads*c.Context*c.Context)
			for b.Loop() {
				n.Attend(qkv, y, att, c.Heads)
				n.AttendBack(qkv, att, dy, dqkv, c.Heads)
			}
		})
	}
}
