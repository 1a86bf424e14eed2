package ccl

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/internal/lived"
)

var errNoContext = errors.New("the context is nil; context.Background() is one that never ends")

// noContext is the error of op on c, which may be no Comm, without a context; nil if there is one.
// Each function of the API that takes a context asks: test/imports checks that.
func noContext(ctx context.Context, c *Comm, op string) error {
	if ctx != nil {
		return nil
	}
	return c.refuse(op, ErrArgument, errNoContext)
}

// limited is ctx for what may take so long, if d is more than 0, in time lived, and what ends it.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, noEnd
	}
	return lived.Within(ctx, d)
}

func noEnd() {}
