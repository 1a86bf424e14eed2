// Command 1 is the first step of docs/tutorial.md: every rank says which one it is.
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

	fmt.Printf("rank %d of %d\n", c.Rank(), c.Size())
	return nil
}
