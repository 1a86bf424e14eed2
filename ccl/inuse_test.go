package ccl_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A second goroutine that makes a call while the first is in one is told so, with both places, and the Comm is good.
func TestTwoGoroutines(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 0 {
			var first sync.WaitGroup
			first.Go(func() { assert.NoError(t, ccl.Barrier(ctx, c)) }) // line 19
			until(t, "the first does not wait", func() bool {
				for k := range c.Trace() {
					if k.Caller != "" {
						return true
					}
				}
				return false
			})
			x := []int{1}
			err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 29
			wants(t, err, ccl.ErrArgument)
			assert.ErrorContains(t, err, "this Comm is in a call of another goroutine, Barrier #1 at ccl/inuse_test.go:19; this one is at ccl/inuse_test.go:29. One goroutine")
			for name, use := range map[string]func() error{
				"Split":     func() error { _, err := c.Split(ctx, 0, 0); return err },
				"SplitWith": func() error { _, err := c.SplitWith(ctx, 0, 0, func(*ccl.Options) {}); return err },
				"Window":    func() error { _, err := c.Window(ctx, ccl.Buf{}); return err },
				"Shrink":    func() error { _, err := c.Shrink(ctx); return err },
				"MakeSlice": func() error { _, err := ccl.MakeSlice[int](ctx, c, 1); return err },
			} {
				err := use()
				wants(t, err, ccl.ErrArgument)
				assert.ErrorContains(t, err, "rank 0: "+name+": ")
				assert.ErrorContains(t, err, "this Comm is in a call of another goroutine, Barrier #1 at ccl/inuse_test.go:19")
			}
			meet(ctx)
			first.Wait()
		} else {
			meet(ctx)
			require.NoError(t, ccl.Barrier(ctx, c))
		}
		x := []int{1}
		require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
		assert.Equal(t, []int{2}, x)
	})
}
