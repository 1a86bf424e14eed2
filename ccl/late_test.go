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
	everywhere(t, 3, &ccl.Options{Timeout: 1500 * time.Millisecond}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
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

// Ranks that receive from each other get an error that says deadlock, with the circle, the same on all.
func TestDeadlockIsSaid(t *testing.T) {
	everywhere(t, 2, &ccl.Options{Timeout: 2 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		e := wants(t, ccl.Recv(ctx, c, make([]int, 1), 1-c.Rank()), ccl.ErrTimeout)
		_, said, _ := strings.Cut(e.Error(), "timed out: ")
		assert.Equal(t, "deadlock: rank 0 waits for 1 in world #1, 1 for 0 in world #1, all in Recv: not done after 2s", said, "%v", e)
		assert.Equal(t, -1, e.Peer)
	})
}
