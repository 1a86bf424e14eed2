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

// A mismatch names both calls by the numbers that their ranks count them by: messages count, which have no place in the order
// of the collectives, and what a Comm calls for itself does not.
func TestMismatchNumbersTheCalls(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		x, number := []int{1, 2}, []uint64{4, 4, 2} // of the next call of each rank
		for range 2 {
			switch c.Rank() {
			case 0:
				assert.NoError(t, ccl.Send(ctx, c, x, 1))
			case 1:
				assert.NoError(t, ccl.Recv(ctx, c, x, 0))
			}
		}
		meet(ctx) // or the mismatch ends a message that is still under way
		e := wants(t, ccl.AllReduce(ctx, c, x[c.Rank()/2:], x[c.Rank()/2:], ccl.Sum), ccl.ErrMismatch)
		if assert.NotNil(t, e.Theirs) {
			assert.Equal(t, []uint64{number[c.Rank()], number[e.Peer]}, []uint64{e.Mine.Seq, e.Theirs.Seq}, "%v", e)
			assert.NotEmpty(t, e.Mine.Caller)
			assert.NotEmpty(t, e.Theirs.Caller)
		}
	})
}

// So does a message of another length, whose count is that of what was sent.
func TestMessageMismatchNumbersTheCalls(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		works(ctx, t, c)
		if c.Rank() == 0 {
			ccl.SendRecv(ctx, c, make([]int, 2), 1, make([]int, 3), 1) // the other rank expects 2
			<-c.Done()
			return
		}
		e := wants(t, ccl.SendRecv(ctx, c, make([]int, 2), 0, make([]int, 2), 0), ccl.ErrMismatch)
		if assert.NotNil(t, e.Theirs) {
			assert.Equal(t, []uint64{3, 3, 2, 3}, []uint64{e.Mine.Seq, e.Theirs.Seq, e.Mine.Count, e.Theirs.Count}, "%v", e)
		}
	})
}
