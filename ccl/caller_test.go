package ccl_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A mismatch has the place of this rank's call, whether it has waited or not.
func TestMismatchHasThePlace(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		x := make([]int, 1+c.Rank())
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 18
		e := wants(t, err, ccl.ErrMismatch)
		assert.Equal(t, "ccl/caller_test.go:18", e.Mine.Caller)
		assert.ErrorContains(t, err, "sum at ccl/caller_test.go:18, rank")
	})
}

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
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 46
		watch.Wait()
		assert.Equal(t, "ccl/caller_test.go:46", wants(t, err, ccl.ErrCanceled).Mine.Caller)
		assert.Equal(t, "ccl/caller_test.go:46", place)
	})
}
