package ccl_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A call that has waited for long says in its error, and in the trace, where it was made. The test ends it once the trace
// does.
func TestCaller(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		var place string
		var watch sync.WaitGroup
		watch.Go(func() {
			defer cancel()
			until(t, "the trace does not say where", func() bool {
				for call := range c.Trace() {
					place = call.Caller
				}
				return place != ""
			})
		})
		x := []int{1}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 34
		watch.Wait()
		assert.Equal(t, "ccl/caller_test.go:34", wants(t, err, ccl.ErrCanceled).Mine.Caller)
		assert.Equal(t, "ccl/caller_test.go:34", place)
	})
}
