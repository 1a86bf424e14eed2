// Command hello is the smallest program on ccl: every rank says who and where it
// is, and together they add up their ranks.
//
//	go build -o /tmp/hello ./examples/hello
//	go run ./bench launch -np 4 -- /tmp/hello
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
)

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

	at := c.Place()
	fmt.Printf("rank %d of %d, on %s: number %d of the %d there\n", c.Rank(), c.Size(), at.Host, at.Local, at.Locals)

	sum := []int64{int64(c.Rank())}
	if err := ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("the ranks add up to %d\n", sum[0])
	}
	return nil
}
