package ccl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Rank 0 has read the settings of the job, and tells the others.
func ExampleBroadcastValue() {
	type settings struct {
		Rate   float64
		Layers []string
	}
	ctx := context.Background()
	got := make([]settings, 2)
	ranks(2, func(c *ccl.Comm) (err error) {
		var s settings
		if c.Rank() == 0 {
			s = settings{0.1, []string{"in", "out"}}
		}
		got[c.Rank()], err = ccl.BroadcastValue(ctx, c, s, 0)
		return err
	})
	fmt.Println(got[1])
	// Output: {0.1 [in out]}
}

// If one rank has what cannot be encoded, all ranks get the same error, and go on.
func ExampleBroadcastValue_error() {
	ctx := context.Background()
	got := make([]error, 2)
	ranks(2, func(c *ccl.Comm) error {
		_, got[c.Rank()] = ccl.BroadcastValue[any](ctx, c, make(chan int), 0)
		return ccl.Barrier(ctx, c)
	})
	fmt.Println(errors.Is(got[0], ccl.ErrArgument), errors.Is(got[1], ccl.ErrArgument))
	// Output: true true
}

func ExampleAllGatherValues() {
	ctx := context.Background()
	got := make([][]string, 3)
	ranks(3, func(c *ccl.Comm) (err error) {
		got[c.Rank()], err = ccl.AllGatherValues(ctx, c, fmt.Sprint("file of rank ", c.Rank()))
		return err
	})
	fmt.Printf("%q\n", got[2])
	// Output: ["file of rank 0" "file of rank 1" "file of rank 2"]
}

func ExampleGatherValues() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		lost := map[int]string{c.Rank(): "x"}
		all, err := ccl.GatherValues(ctx, c, lost, 0)
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [map[0:x] map[1:x] map[2:x]]
}

func ExampleScatterValues() {
	ctx := context.Background()
	got := make([]string, 2)
	ranks(2, func(c *ccl.Comm) (err error) {
		var files []string // of no meaning but on the root
		if c.Rank() == 1 {
			files = []string{"train.bin", "val.bin"}
		}
		got[c.Rank()], err = ccl.ScatterValues(ctx, c, files, 1)
		return err
	})
	fmt.Println(got)
	// Output: [train.bin val.bin]
}

func ExampleSendValue() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		if c.Rank() == 0 {
			return ccl.SendValue(ctx, c, []string{"a", "b"}, 1)
		}
		got, err := ccl.RecvValue[[]string](ctx, c, 0)
		fmt.Println(got)
		return err
	})
	// Output: [a b]
}
