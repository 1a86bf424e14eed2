package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// keepOn trains, and with -recover goes on with the ranks that are left, from the last checkpoint. It returns the last Comm.
func keepOn(ctx context.Context, world *ccl.Comm, c *config, r *run) (*ccl.Comm, error) {
	for {
		err := r.train(ctx, world, c)
		if err == nil || !c.recover || !lost(world, err) {
			return world, err
		}
		began := time.Now()
		smaller, failed := world.Shrink(ctx)
		if failed != nil {
			return world, errors.Join(err, failed)
		}
		world.Close()
		world = smaller
		n := c.fit(world.Size())
		if n < world.Size() { // the rows do not divide among all that are left
			color := 0
			if world.Rank() >= n {
				color = -1
			}
			used, err := world.Split(ctx, color, 0)
			if err != nil || color < 0 {
				return world, err
			}
			world.Close()
			world = used
		}
		if world.Rank() == 0 {
			fmt.Fprintf(r.out, "%v\ngoing on with %d rank(s) after %.2f s, from the last checkpoint; the last line was of step %d\n", err, n, time.Since(began).Seconds(), r.said)
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

// lost reports whether training failed because a rank was lost. A rank may hear of that as an Abort first.
func lost(world *ccl.Comm, err error) bool {
	if errors.Is(err, ccl.ErrRankLost) {
		return true
	}
	select {
	case <-world.Done():
		return errors.Is(world.Err(), ccl.ErrRankLost)
	case <-time.After(time.Second):
		return false
	}
}
