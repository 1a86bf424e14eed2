package sp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/sp"
)

// Two tokens with two heads: rank 1 has the second token, then the second head of both.
func ExampleToHeads() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		src := []int{10*c.Rank() + 1, 10*c.Rank() + 2} // heads 1 and 2 of this rank's token
		dst, scratch := make([]int, 2), make([]int, 2)
		err := sp.ToHeads(ctx, c, sp.Shape{Seq: 2, Heads: 2, Dim: 1}, dst, src, scratch)
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [2 12]
}

// Each rank sees all blocks, its own one first, and adds to their gradients.
func ExampleRing() {
	ctx := context.Background()
	ccltest.Example(3, func(c *ccl.Comm) error {
		grad := make([]float32, 1)
		r := sp.NewGradRing(c, []float32{float32(c.Rank()) + .5}, grad)
		for r.Next(ctx) {
			if c.Rank() == 1 {
				fmt.Println("block", r.Block(), "of rank", r.From())
			}
			r.Add(ctx, []float32{float32(c.Rank() + 1)})
		}
		if err := r.Home(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println("gradient", grad)
		}
		return nil
	})
	// Output:
	// block [1.5] of rank 1
	// block [0.5] of rank 0
	// block [2.5] of rank 2
	// gradient [6]
}

// Four ranks share seven tokens with two heads of one element: two parts in a ring, each for two ranks of Ulysses. Rank 3 has
// the last token; it gets the second head of the ring's second part, tokens 4 to 6, and then that of all others.
func ExampleNewRingOf() {
	ctx := context.Background()
	ccltest.Example(4, func(c *ccl.Comm) error {
		m, err := mesh.New(ctx, c, mesh.Dim{Name: "ring", Size: 2}, mesh.Dim{Name: "ulysses", Size: 2})
		if err != nil {
			return err
		}
		defer m.Close()
		var lens []int // of the ring's blocks of one head
		for r := range 2 {
			lo, hi := sp.Part(7, r, 2)
			lens = append(lens, hi-lo)
		}
		first, end := sp.Part(7, m.Coord("ring"), 2)
		lo, hi := sp.Part(end-first, m.Coord("ulysses"), 2)
		var src []float32
		for token := first + lo; token < first+hi; token++ {
			src = append(src, float32(token)+.1, float32(token)+.2) // heads 1 and 2
		}
		kv, scratch := make([]float32, end-first), make([]float32, len(src))
		if err := sp.ToHeads(ctx, m.Comm("ulysses"), sp.Shape{Seq: end - first, Heads: 2, Dim: 1}, kv, src, scratch); err != nil {
			return err
		}
		r := sp.NewRingOf(m.Comm("ring"), kv, lens)
		for r.Next(ctx) {
			if c.Rank() == 3 {
				fmt.Println("from", r.From(), r.Block())
			}
		}
		return r.Err()
	})
	// Output:
	// from 1 [4.2 5.2 6.2]
	// from 0 [0.2 1.2 2.2 3.2]
}
