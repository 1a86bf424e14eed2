// Command 4 is the fourth step of docs/tutorial.md: rank 0 reads the settings, and tells the others.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/optim"
)

const samples = 1000

// settings are what a run may be told.
type settings struct {
	Steps int
	Rate  float64
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
	s := settings{Steps: 100, Rate: 1}
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
	for step := 1; step <= s.Steps; step++ {
		g := gradient(w, c.Rank(), c.Size())
		if err := ccl.AllReduce(ctx, c, g, g, ccl.Sum); err != nil {
			return err
		}
		if err := optim.ApplySGD(optim.SGD{LR: s.Rate}, w, g[:2], nil); err != nil {
			return err
		}
		if step%20 == 0 && c.Rank() == 0 {
			fmt.Printf("step %d: loss %.6f\n", step, g[2])
		}
	}
	return nil
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
