// Command 2 is the second step of docs/tutorial.md: every rank has a part of the data, and all get the sum.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/data"
)

const samples = 1000

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

	lo, hi := data.Range(samples, c.Rank(), c.Size())
	fmt.Printf("rank %d of %d has samples %d to %d\n", c.Rank(), c.Size(), lo, hi-1)
	sum := []float64{0}
	for i := lo; i < hi; i++ {
		_, y := sample(i)
		sum[0] += y
	}
	if err := ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("the mean is %.4f\n", sum[0]/samples)
	}
	return nil
}
