package ddp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// Two ranks average their gradients, of which the last layer's are ready first. A program starts with ccl.Join.
func ExampleReducer() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		first, last := make([]float32, 1), make([]float32, 2)
		r, err := ddp.New(ctx, c, []ccl.Buf{ccl.BufOf(first), ccl.BufOf(last)}, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		last[0], last[1] = float32(c.Rank()), 3
		r.Ready(1)
		first[0] = 1 + float32(c.Rank())
		r.Ready(0)
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(first, last)
		}
		return nil
	})
	// Output: [1.5] [0.5 3]
}
