package main

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/job"
)

// keepOn trains, and with -recover goes on with the ranks that are left, from the last checkpoint.
// It returns the last Comm.
func keepOn(ctx context.Context, world *ccl.Comm, c *config, r *run) (*ccl.Comm, error) {
	for {
		err := r.train(ctx, world, c)
		if err == nil || !c.recover || !job.Lost(world, err) {
			return world, err
		}
		began := time.Now()
		next, used, failed := job.Shrink(ctx, world, err, c.fit)
		if world = next; failed != nil || !used { // the rows do not divide among all that are left
			return world, failed
		}
		if world.Rank() == 0 {
			fmt.Fprintf(r.out, "%v\ngoing on with %d rank(s) after %.2f s, from the last checkpoint; the last line was of step %d\n", err, world.Size(), time.Since(began).Seconds(), r.said)
		}
		c.resume, r.again = true, true
	}
}

// fit is how many of n ranks the rows divide among.
func (c *config) fit(n int) int {
	for c.rows%(n*c.micro) != 0 && n > 1 {
		n--
	}
	return n
}
