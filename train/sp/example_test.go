package sp_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/sp"
)

// ranks runs f as n ranks of this process. A program starts with ccl.Join in its place.
func ranks(n int, f func(c *ccl.Comm) error) {
	var all sync.WaitGroup
	for _, b := range boot.Local(n) {
		all.Go(func() {
			c, err := ccl.NewComm(context.Background(), b, nil)
			if err == nil {
				defer c.Close()
				err = f(c)
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
}

// Two tokens with two heads: rank 1 has the second token, then the second head of both.
func ExampleToHeads() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
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
	ranks(3, func(c *ccl.Comm) error {
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
