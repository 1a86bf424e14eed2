package resume

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Lost reports whether a call failed because a rank was lost. The Comms of a job fail together, one
// after the other, and a rank may hear of the loss as an Abort first.
func Lost(world *ccl.Comm, err error) bool {
	if errors.Is(err, ccl.ErrRankLost) {
		return true
	}
	if !errors.Is(err, ccl.ErrAborted) && !errors.Is(err, ccl.ErrClosed) {
		return false
	}
	select {
	case <-world.Done():
		return errors.Is(world.Err(), ccl.ErrRankLost)
	case <-time.After(time.Second):
		return false
	}
}

// Shrink returns the Comm of the ranks that are left of world, as many as fit says of their number.
// Where this rank is none of them, or there are none, used is false.
func Shrink(ctx context.Context, world *ccl.Comm, cause error,
	fit func(n int) int) (next *ccl.Comm, used bool, err error) {
	smaller, err := world.Shrink(ctx)
	if err != nil {
		return world, false, errors.Join(cause, err)
	}
	world.Close()
	n, color := fit(smaller.Size()), 0
	if n == 0 || n == smaller.Size() {
		return smaller, n > 0, nil
	}
	if smaller.Rank() >= n {
		color = -1
	}
	part, err := smaller.Split(ctx, color, 0)
	if err != nil || color < 0 {
		return smaller, false, err
	}
	smaller.Close()
	return part, true, nil
}
