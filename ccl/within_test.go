package ccl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A call that takes longer than its limit fails the Comm on all ranks, and names ranks that have not come; calls within it are as
// others. Ranks may have other limits.
func TestWithin(t *testing.T) {
	const limit = 300 * time.Millisecond
	for _, tc := range []struct {
		name  string
		issue func(c *ccl.Comm) ccl.Work
	}{
		{"queued", func(c *ccl.Comm) ccl.Work { return c.On(nil).Within(limit).Barrier() }},
		{"now", func(c *ccl.Comm) ccl.Work { return c.On(ccl.Now).Within(limit).Barrier() }},
		{"a group", func(c *ccl.Comm) ccl.Work {
			return c.On(nil).Within(limit).Group(func(g ccl.Queue) error { g.Barrier(); ask(g, []int{1}); return nil })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inTime(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				q := c.On(nil).Within(time.Duration(c.Rank()) * time.Hour)
				require.NoError(t, q.Barrier().Wait(ctx))
				require.NoError(t, ask(q, []int{1}).Wait(ctx))
				meet(ctx)
				if c.Rank() > 0 {
					<-c.Done()
					wants(t, c.Err(), ccl.ErrTimeout)
					return
				}
				e := wants(t, tc.issue(c).Wait(ctx), ccl.ErrTimeout)
				require.NotEmpty(t, e.Missing) // over a network those that this rank waits for: MonitoredBarrier names all
				require.NotContains(t, e.Missing, 0)
				require.ErrorIs(t, e, context.DeadlineExceeded)
			})
		})
	}
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		wants(t, ccl.Queue{}.Within(limit).Barrier().Wait(ctx), ccl.ErrArgument)
		e := wants(t, c.On(nil).Within(-1).Barrier().Wait(ctx), ccl.ErrArgument)
		assert.Contains(t, e.Error(), "Within: the limit is -1ns; 0 is none")
	})
}

// A place that is given stands where the line of Go would, for calls that are queued or made now; none is left out.
func TestFrom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream ccl.Stream
	}{{"queued", nil}, {"now", ccl.Now}} {
		t.Run(tc.name, func(t *testing.T) {
			everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				q := c.On(tc.stream).From("train.py:88")
				x := []int{1, 2, 3}
				n := 2 + c.Rank()
				e := wants(t, q.AllReduce(ccl.BufOf(x[:n]), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrMismatch)
				require.NotNil(t, e.Mine)
				assert.Equal(t, "train.py:88", e.Mine.Caller)
				if tc.stream != nil { // ranks that block tell each other
					require.NotNil(t, e.Theirs)
					assert.Equal(t, "train.py:88", e.Theirs.Caller)
				}
			})
		})
	}
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(nil)
		for _, place := range []string{"", "a\x1b[2Jb", strings.Repeat("x", 1000)} {
			require.NoError(t, ask(q.From(place), []int{1}).Wait(ctx))
		}
		require.NoError(t, ask(q, []int{1}).Wait(ctx))
		require.Error(t, ccl.Queue{}.From("x").Barrier().Wait(ctx))
		var places []string
		for k := range c.Trace() {
			places = append(places, k.Caller)
		}
		require.Len(t, places, 4)
		assert.Equal(t, []string{"", `a\x1b[2Jb`, strings.Repeat("x", 120)}, places[:3])
		assert.Contains(t, places[3], "ccl/queue_test.go:")
	})
}
