package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// Whatever way ranks differ, on one host or several, and whatever algorithms they chose: every rank learns of
// it, with its own call and another rank's. The promise is 200 ms between hosts; this waits for ten times that,
// far less than the Timeout.
func TestR4MismatchIsToldToAll(t *testing.T) {
	for _, tc := range mismatches {
		t.Run(tc.name, func(t *testing.T) {
			everywhere(t, 3, &ccl.Options{Timeout: time.Minute}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				works(ctx, t, c)
				meet(ctx)
				began := time.Now()
				mine := tc.most
				if c.Rank() == 1 {
					mine = tc.odd
				}
				err := mine(ctx, c)
				if err == nil { // a rank that receives nothing may be told by its next call
					err = ccl.Barrier(ctx, c)
				}
				e := wants(t, err, ccl.ErrMismatch)
				assert.Less(t, time.Since(began), soon) // test/promises asserts how soon
				assert.NotEqual(t, c.Rank(), e.Peer)
				assert.NotNil(t, e.Mine)
				assert.NotNil(t, e.Theirs, "%v", err)
				assert.NotEqual(t, e.Peer == 1, c.Rank() == 1, "rank %d: %v", c.Rank(), err)
			})
		})
	}
}

// Ranks on three hosts that wait for different peers: no message that they get differs from what they expect, and
// for most of them none comes at all.
func TestR4RanksWaitForDifferentPeers(t *testing.T) {
	o := &ccl.Options{Timeout: time.Minute}
	hosts := []string{"a", "a", "b", "c", "c"}
	world(t, len(hosts), hosts, func(int) *ccl.Options { return o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		calls := []call{reduceAll[float32](10, ccl.Sum), reduceAll[float32](10, ccl.Sum), broadcast(10, 4), reduceTo(10, 3), reduceTo(10, 3)}
		err := calls[c.Rank()](ctx, c)
		if err == nil {
			err = ccl.Barrier(ctx, c)
		}
		e := wants(t, err, ccl.ErrMismatch)
		assert.NotNil(t, e.Mine)
		assert.NotNil(t, e.Theirs, "%v", err)
	})
}

// A rank that is one call behind the others, because it left one out, and then waits with them.
func TestR4CallLeftOut(t *testing.T) {
	everywhere(t, 3, &ccl.Options{Timeout: time.Minute}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		var err error
		if c.Rank() != 2 {
			err = broadcast(4, 0)(ctx, c)
		}
		for err == nil {
			err = reduceAll[int32](4, ccl.Sum)(ctx, c)
		}
		wants(t, err, ccl.ErrMismatch)
	})
}

// A rank is late. One waits for it in a call that comes before the one in which the rest wait for both: it is
// not the one to blame.
func TestR3WaiterIsNotNamed(t *testing.T) {
	const late, waiter, ahead = 3, 2, 1
	for _, tc := range []struct {
		name string
		call func(ctx context.Context, c *ccl.Comm) error
	}{
		{"a receive", func(ctx context.Context, c *ccl.Comm) error {
			if c.Rank() != waiter {
				return nil
			}
			return ccl.Recv(ctx, c, make([]int32, 1), late)
		}},
		{"a reduction", reduceTo(8, waiter)},
		{"a receive from who receives, a reduction ahead of it", func(ctx context.Context, c *ccl.Comm) error {
			if c.Rank() == waiter {
				return ccl.Recv(ctx, c, make([]int32, 1), late)
			}
			err := reduceTo(8, waiter)(ctx, c)
			if err != nil || c.Rank() != ahead {
				return err
			}
			first, stop := context.WithTimeout(ctx, 500*time.Millisecond)
			defer stop()
			return ccl.Recv(first, c, make([]int32, 1), waiter)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 5, nil, nil, func(ctx context.Context, t *testing.T, world *ccl.Comm) {
				c, err := world.Split(ctx, 0, 0)
				assert.NoError(t, err)
				defer c.Close()
				works(ctx, t, c)
				meet(ctx)
				if c.Rank() == late {
					<-c.Done()
					return
				}
				short, stop := context.WithTimeout(ctx, time.Second)
				defer stop()
				if err = tc.call(short, c); err == nil {
					err = ccl.Barrier(short, c)
				}
				assert.Equal(t, late, wants(t, err, ccl.ErrTimeout).Peer, "rank %d: %v", c.Rank(), err)
			})
		})
	}
}

// The same between hosts: the waiter has said so, well before the timeout.
func TestR3WaiterOfAnotherHostIsNotNamed(t *testing.T) {
	const late, waiter, asks = 3, 2, 0
	for _, hosts := range [][]string{{"a", "a", "b", "b"}, {"a", "b", "c", "d"}} {
		virtually(t, 4, hosts, func(int) *ccl.Options { return &ccl.Options{Timeout: 2 * time.Second} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			works(ctx, t, c)
			meet(ctx)
			var err error
			switch c.Rank() {
			case waiter:
				err = ccl.Recv(ctx, c, make([]int32, 1), late)
			case asks:
				first, stop := context.WithTimeout(ctx, 1500*time.Millisecond)
				defer stop()
				err = ccl.Recv(first, c, make([]int32, 1), waiter)
			default:
				<-c.Done()
				return
			}
			assert.Equal(t, late, wants(t, err, ccl.ErrTimeout).Peer, "rank %d: %v", c.Rank(), err)
		})
	}
}
