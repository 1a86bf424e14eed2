package ddp_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/ddp"
)

// Two ranks have 1 and 3 rows, and each divides the sum of its losses by all 4: their gradients add up to those of the mean.
func ExampleOptions_sum() {
	ctx := context.Background()
	rows := [][]float32{{4}, {0, 8, 8}} // the gradient of each row's loss
	var all sync.WaitGroup
	for _, b := range boot.Local(2) {
		all.Go(func() {
			c, err := ccl.NewComm(ctx, b, nil)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			g := []float32{0}
			r, err := ddp.New(ctx, c, []ccl.Buf{ccl.BufOf(g)}, &ddp.Options{Sum: true})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer r.Close()
			for _, x := range rows[c.Rank()] {
				g[0] += x / 4
			}
			if err := r.All(ctx); err != nil {
				fmt.Println(err)
			}
			if c.Rank() == 0 {
				fmt.Println(g)
			}
		})
	}
	all.Wait()
	// Output: [5]
}
