package ddp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// Two ranks have 1 and 3 rows, and each divides the sum of its losses by all 4: their gradients add up to those of the mean.
func ExampleOptions_sum() {
	ctx := context.Background()
	rows := [][]float32{{4}, {0, 8, 8}} // the gradient of each row's loss
	ccltest.Example(2, func(c *ccl.Comm) error {
		g := []float32{0}
		r, err := ddp.New(ctx, c, []ccl.Buf{ccl.BufOf(g)}, &ddp.Options{Sum: true})
		if err != nil {
			return err
		}
		defer r.Close()
		for _, x := range rows[c.Rank()] {
			g[0] += x / 4
		}
		err = r.All(ctx)
		if c.Rank() == 0 {
			fmt.Println(g)
		}
		return err
	})
	// Output: [5]
}
