// Command 5 is the fifth step of docs/tutorial.md: the ranks save what they have, and go on from it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/optim"
)

const samples = 1000

// settings are what a run may be told.
type settings struct {
	Steps int
	Rate  float64
	Dir   string // where checkpoints are
}

// sample is the data: a line. The job does not know its slope and its height.
func sample(i int) (x, y float64) {
	x = float64(i) / samples
	return x, 3*x - 1
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	s, err := read(ctx, c)
	if err != nil {
		return err
	}
	return train(ctx, c, s)
}

// read has rank 0 read the file that the command names, as another rank's host need not have it.
func read(ctx context.Context, c *ccl.Comm) (settings, error) {
	s := settings{Steps: 100, Rate: 1, Dir: "checkpoints"}
	if c.Rank() == 0 && len(os.Args) > 1 {
		text, err := os.ReadFile(os.Args[1])
		if err != nil {
			return s, err
		}
		if err := json.Unmarshal(text, &s); err != nil {
			return s, err
		}
	}
	return ccl.BroadcastValue(ctx, c, s, 0)
}

// train finds the slope w[0] and the height w[1] of the line.
func train(ctx context.Context, c *ccl.Comm, s settings) error {
	w := []float64{0, 0}
	step, err := resume(ctx, c, s.Dir, w)
	if err != nil {
		return err
	}
	for step++; step <= s.Steps; step++ {
		g := gradient(w, c.Rank(), c.Size())
		if err := ccl.AllReduce(ctx, c, g, g, ccl.Sum); err != nil {
			return err
		}
		if err := optim.ApplySGD(optim.SGD{LR: s.Rate}, w, g[:2], nil); err != nil {
			return err
		}
		if step%20 > 0 {
			continue
		}
		if c.Rank() == 0 {
			fmt.Printf("step %d: loss %.6f\n", step, g[2])
		}
		if err := ckpt.Save(ctx, c, ckpt.Step(s.Dir, step), step, tensors(w)); err != nil {
			return err
		}
	}
	return nil
}

// resume loads the last checkpoint and returns its step; 0 if there is none.
func resume(ctx context.Context, c *ccl.Comm, dir string, w []float64) (step int, err error) {
	latest, _, err := ckpt.Latest(ctx, c, dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := ckpt.Load(ctx, c, latest, &step, tensors(w)); err != nil {
		return 0, err
	}
	if c.Rank() == 0 {
		fmt.Printf("going on from step %d with %d ranks\n", step, c.Size())
	}
	return step, nil
}

// tensors are what a checkpoint holds: w, which is the same on all ranks.
func tensors(w []float64) []ckpt.Tensor {
	return []ckpt.Tensor{{Name: "w", Shape: []int{len(w)}, Data: w}}
}

// gradient is this rank's part of the gradient, and of the loss, which travels with it.
func gradient(w []float64, rank, size int) []float64 {
	g := make([]float64, 3)
	lo, hi := data.Range(samples, rank, size)
	for i := lo; i < hi; i++ {
		x, y := sample(i)
		d := w[0]*x + w[1] - y
		g[0] += d * x / samples
		g[1] += d / samples
		g[2] += d * d / samples
	}
	return g
}
