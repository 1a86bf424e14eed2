package lent

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/backoff"
)

// pollMax is the longest sleep between two queries.
const pollMax = 200 * time.Microsecond

// Poll calls query until it says that the work is done, or ctx ends. It sleeps between the calls,
// longer each time, up to 200 microseconds.
func Poll(ctx context.Context, query func() (done bool, err error)) error {
	wait := backoff.Sleep{First: time.Microsecond, Most: pollMax}
	for {
		if done, err := query(); done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		wait.Next()
	}
}
