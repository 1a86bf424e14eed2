// Command tpsum computes y = x W on 3 ranks, each of which has some rows of W and the same entries of x, in three ways:
// a chain of Send and Recv, one AllReduce, and package tp's Enter and Leave. All give the same numbers.
//
//	go build -o /tmp/tpsum ./examples/tpsum
//	go run ./bench launch -np 3 -- /tmp/tpsum
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/tp"
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
	return sums(ctx, c, os.Stdout)
}

const columns = 4

// sums computes y in three ways; the last rank, where the chain ends, prints it.
func sums(ctx context.Context, c *ccl.Comm, out io.Writer) error {
	x, w := float32(c.Rank()+1), []float32{1, 2, 3, 4} // this rank's entry of x, and row of W
	part := make([]float32, columns)
	for j := range part {
		part[j] = x * (w[j] + float32(c.Rank()))
	}

	chain, before := slices.Clone(part), make([]float32, columns)
	if c.Rank() > 0 {
		if err := ccl.Recv(ctx, c, before, c.Rank()-1); err != nil {
			return err
		}
		for j := range chain {
			chain[j] += before[j]
		}
	}
	if last := c.Size() - 1; c.Rank() < last {
		if err := ccl.Send(ctx, c, chain, c.Rank()+1); err != nil {
			return err
		}
	}
	if err := ccl.Broadcast(ctx, c, chain, c.Size()-1); err != nil { // only the last rank has it all
		return err
	}

	all := make([]float32, columns)
	if err := ccl.AllReduce(ctx, c, all, part, ccl.Sum); err != nil {
		return err
	}

	// In a model the first layer makes this rank's entries of x: Enter comes before it, and is the identity forward.
	g := &tp.Group{Comm: c}
	if _, err := tp.Enter(ctx, g, nil, part); err != nil {
		return err
	}
	left, err := tp.Leave(ctx, g, nil, slices.Clone(part))
	if err != nil {
		return err
	}
	if c.Rank() == c.Size()-1 {
		fmt.Fprintf(out, "Send and Recv:   %v\nAllReduce:       %v\nEnter and Leave: %v\nthe same: %v\n", chain, all, left,
			slices.Equal(chain, all) && slices.Equal(all, left))
	}
	return nil
}
