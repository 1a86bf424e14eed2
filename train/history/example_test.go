package history_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
)

// Rank 0 writes a line for each step; each rank knows all of it.
func ExampleHistory_Log() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
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

// The metrics of a run, read from its JSON lines, as a table.
func ExampleHistory_CSV() {
	h, err := history.Read(strings.NewReader(`{"step":1,"loss":{"mean":3,"min":2.5,"max":3.5,"std":0.5}}
{"step":2,"loss":{"mean":2,"min":1.5,"max":2.5,"std":0.5},"validation":{"mean":2.25,"min":2.25,"max":2.25,"std":0}}
`))
	if err == nil {
		err = h.CSV(os.Stdout)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// step,loss,loss.min,loss.max,loss.std,validation,validation.min,validation.max,validation.std
	// 1,3,2.5,3.5,0.5,,,,
	// 2,2,1.5,2.5,0.5,2.25,2.25,2.25,0
}
