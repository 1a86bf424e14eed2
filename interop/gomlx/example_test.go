package gomlx_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/backends"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/context/checkpoints"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/interop/gomlx"
)

// ranks runs f as n ranks of this process. A program starts with ccl.Join in its place.
func ranks(n int, f func(ctx context.Context, c *ccl.Comm) error) {
	done := make(chan error)
	for _, b := range boot.Local(n) {
		go func() {
			c, err := ccl.NewComm(context.Background(), b, nil)
			if err == nil {
				err = f(context.Background(), c)
				c.Close()
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			fmt.Println(err)
		}
	}
}

// Two ranks train, and rank 0 writes gomlx's checkpoint, without the gradients, which each step makes anew. Three ranks go on from
// it: rank 0 alone loads it, and the others get its weights, its optimizer's state and its step.
func Example_checkpoint() {
	dir, err := os.MkdirTemp("", "gomlx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	run := func(ctx context.Context, c *ccl.Comm, steps int) error {
		backend, err := backends.NewWithConfig("go:ops_sequential")
		if err != nil {
			return err
		}
		model := mlctx.New()
		var saved *checkpoints.Handler
		if c.Rank() == 0 {
			if saved, err = checkpoints.Build(model).Dir(filepath.Join(dir, "run")).Done(); err != nil {
				return err
			}
		}
		opt, err := gomlx.New(c, backend, model, optimizers.Adam().Done())
		if err != nil {
			return err
		}
		defer opt.Close()
		loop := train.NewLoop(train.NewTrainer(backend, model.Checked(false), hidden(8), losses.MeanSquaredError, opt, nil, nil))
		opt.Attach(ctx, loop)
		if _, err := loop.RunSteps(&batches[float32]{rank: c.Rank(), n: c.Size()}, steps); err != nil {
			return err
		}
		if c.Rank() == c.Size()-1 {
			fmt.Printf("%d ranks are at step %d\n", c.Size(), optimizers.GetGlobalStep(model))
		}
		if c.Rank() == 0 {
			saved.ExcludeVarsFromSaving(opt.Gradients()...)
			return saved.Save()
		}
		return nil
	}
	ranks(2, func(ctx context.Context, c *ccl.Comm) error { return run(ctx, c, 5) })
	ranks(3, func(ctx context.Context, c *ccl.Comm) error { return run(ctx, c, 3) })
	// Output:
	// 2 ranks are at step 5
	// 3 ranks are at step 8
}
