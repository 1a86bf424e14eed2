package ccl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A timeout names the late ranks on all ranks alike, whichever gave up first, and in the late ones themselves.
func TestMissingIsTheSame(t *testing.T) {
	inTime(t, 3, &ccl.Options{Timeout: 1500 * time.Millisecond}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		meet(ctx) // no call begins before all ranks are there, and so none but the last takes long
		works(ctx, t, c)
		meet(ctx)
		if c.Rank() != 1 {
			wants(t, sum(ctx, c), ccl.ErrTimeout)
		}
		<-c.Done()
		e := wants(t, c.Err(), ccl.ErrTimeout)
		assert.Equal(t, []int{1}, e.Missing)
		assert.ErrorContains(t, e, "timed out at rank 1; no response from: rank 1: not done after 1.5s")
	})
}

// A rank whose one half of a message to itself can never meet the other gets an error that says so, as do the others: none of them is
// late. However short the limit is, this is known.
func TestDeadlockWithItself(t *testing.T) {
	large := make([]float32, 3_000_000)
	for name, tc := range map[string]struct {
		in    string
		check ccl.Check
		call  func(ctx context.Context, c *ccl.Comm) error
	}{
		"a large Send": {"Send", 0, func(ctx context.Context, c *ccl.Comm) error { return ccl.Send(ctx, c, large, c.Rank()) }},
		"a Recv":       {"Recv", 0, func(ctx context.Context, c *ccl.Comm) error { return ccl.Recv(ctx, c, large[:1], c.Rank()) }},
		"a small Send that is confirmed": {"Send", ccl.CheckStrict, func(ctx context.Context, c *ccl.Comm) error {
			return ccl.Send(ctx, c, large[:1], c.Rank())
		}},
		"a queued Send": {"Send", 0, func(ctx context.Context, c *ccl.Comm) error {
			return c.On(nil).Send(ccl.BufOf(large), c.Rank()).Wait(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, 2, &ccl.Options{Timeout: 200 * time.Millisecond, Check: tc.check}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				if c.Rank() == 0 {
					tc.call(ctx, c)
				}
				<-c.Done()
				e := wants(t, c.Err(), ccl.ErrTimeout)
				_, said, _ := strings.Cut(e.Error(), "timed out: ")
				assert.Equal(t, "deadlock: rank 0 waits for itself in world #1, in "+tc.in+": not done after 200ms", said, "%v", e)
				assert.Equal(t, -1, e.Peer)
				assert.Empty(t, e.Missing)
			})
		})
	}
}

// Ranks that receive from each other get an error that says deadlock, with the circle, the same on all.
func TestDeadlockIsSaid(t *testing.T) {
	inTime(t, 2, &ccl.Options{Timeout: 2 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		e := wants(t, ccl.Recv(ctx, c, make([]int, 1), 1-c.Rank()), ccl.ErrTimeout)
		_, said, _ := strings.Cut(e.Error(), "timed out: ")
		assert.Equal(t, "deadlock: rank 0 waits for 1 in world #1, 1 for 0 in world #1, all in Recv: not done after 2s", said, "%v", e)
		assert.Equal(t, -1, e.Peer)
	})
}
