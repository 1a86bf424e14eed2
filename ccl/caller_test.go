package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A call that has waited for long says in its error, and in the trace, where it was
// made.
func TestCaller(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		x := []int{1}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 24
		e := wants(t, err, ccl.ErrTimeout)
		assert.Equal(t, "caller_test.go:24", e.Mine.Caller)
		for call := range c.Trace() {
			assert.Equal(t, "caller_test.go:24", call.Caller)
		}
	})
}
