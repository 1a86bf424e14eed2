// Command multigpu averages gradients across ranks as data-parallel training does: bucket by
// bucket, each as soon as it is there, on a stream, so that communication overlaps with what makes
// the next. It runs on NVIDIA and AMD GPUs, one rank on each, and where there are none on the CPU,
// with the same calls.
//
//	go build -tags nccl,rccl -o /tmp/multigpu ./examples/multigpu
//	go run ./bench launch -np 4 -- /tmp/multigpu
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
)

const (
	steps   = 10
	buckets = 8
	count   = 1 << 16 // elements of a bucket
)

func main() {
	if err := average(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func average(ctx context.Context) (err error) {
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	at, wrong, err := run(ctx, c)
	if err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("rank %d: %d wrong elements", c.Rank(), wrong)
	}
	fmt.Printf("rank %d of %d on %s: %d steps of %d buckets averaged, all right\n", c.Rank(), c.Size(), at, steps, buckets)
	return nil
}

// run makes the steps. It returns where the data lay, and how many elements of the results were wrong.
func run(ctx context.Context, c *ccl.Comm) (at string, wrong int, err error) {
	m, err := open(c)
	if err != nil {
		return "", 0, err
	}
	defer m.close()
	grad, q := make([]float32, count), c.On(m.stream())
	for step := range steps {
		var last ccl.Work
		for b := range buckets {
			for i := range grad {
				grad[i] = value(step, b, i) * float32(c.Rank()+1)
			}
			if err := m.put(b, grad); err != nil {
				return "", 0, err
			}
			last = q.AllReduce(m.bucket(b), ccl.InPlace(), ccl.Sum) // goes on while the next bucket is made
		}
		if err := last.Wait(ctx); err != nil { // all of the stream is done, then
			return "", 0, err
		}
		ranks := float32(c.Size() * (c.Size() + 1) / 2) // 1 + 2 + ... + size
		for b := range buckets {
			if err := m.get(grad, b); err != nil {
				return "", 0, err
			}
			for i, sum := range grad {
				if sum != value(step, b, i)*ranks {
					wrong++
				}
			}
		}
	}
	return m.String(), wrong, nil
}

// value is a number small enough for sums to be exact.
func value(step, bucket, i int) float32 { return float32((step + 3*bucket + i) % 17) }
