package history_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/history"
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

// Rank 0 writes a line for each step; each rank knows all of it.
func ExampleHistory_Log() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		h, err := history.New(ctx, c, &history.Options{Out: os.Stdout, JSON: os.Stdout})
		if err != nil {
			return err
		}
		loss := 2.5 + float64(c.Rank()) // each rank has other samples
		return h.Log(ctx, 10, history.Metric{Name: "loss", Value: loss}, history.Metric{Name: "dt", Value: .25})
	})
	// Output:
	// step=10 loss=3 dt=0.25
	// {"step":10,"loss":{"mean":3,"min":2.5,"max":3.5,"std":0.5},"dt":{"mean":0.25,"min":0.25,"max":0.25,"std":0}}
}
