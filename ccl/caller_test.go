package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A mismatch has the places of both calls, whether they have waited or not.
func TestMismatchHasThePlace(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		x := make([]int, 2)
		places := [2]string{"ccl/caller_test.go:22", "ccl/caller_test.go:24"}
		var err error
		if c.Rank() != 1 {
			err = ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 22
		} else {
			err = ccl.AllReduce(ctx, c, x[:1], x[:1], ccl.Sum) // line 24
		}
		e := wants(t, err, ccl.ErrMismatch)
		if assert.NotNil(t, e.Theirs) {
			assert.Equal(t, places[c.Rank()%2], e.Mine.Caller)
			assert.Equal(t, places[e.Peer%2], e.Theirs.Caller)
			assert.ErrorContains(t, err, fmt.Sprintf("sum at %s, rank %d has", e.Mine.Caller, e.Peer))
			assert.ErrorContains(t, err, "sum at "+e.Theirs.Caller)
		}
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
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum) // line 57
		watch.Wait()
		assert.Equal(t, "ccl/caller_test.go:57", wants(t, err, ccl.ErrCanceled).Mine.Caller)
		assert.Equal(t, "ccl/caller_test.go:57", place)
	})
}

// A queued call has its own place, in its error and in the trace, also in a group.
func TestQueuedCallHasItsPlace(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		q, x, other := c.On(nil), ccl.BufOf(make([]int, 2)), ccl.BufOf(make([]int, 1+c.Rank()))
		assert.NoError(t, q.AllReduce(x, x, ccl.Sum).Wait(ctx)) // line 69
		w := q.Group(func(g ccl.Queue) error {
			g.AllReduce(x, x, ccl.Sum)         // line 71
			g.AllReduce(other, other, ccl.Max) // line 72
			return nil
		})
		q.Barrier() // line 75: never begins
		e := wants(t, w.Wait(ctx), ccl.ErrMismatch)
		assert.Contains(t, []string{"ccl/caller_test.go:71", "ccl/caller_test.go:72"}, e.Mine.Caller)
		var places []string
		for call := range c.Trace() {
			places = append(places, call.Caller)
		}
		assert.Equal(t, []string{"ccl/caller_test.go:69", "ccl/caller_test.go:71", "ccl/caller_test.go:72", "ccl/caller_test.go:75"}, places[len(places)-4:])
	})
}
