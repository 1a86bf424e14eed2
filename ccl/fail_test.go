package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// sum is an all-reduction that nobody looks at the result of.
func sum(ctx context.Context, c *ccl.Comm) error {
	x := []int{1}
	return ccl.AllReduce(ctx, c, x, x, ccl.Sum)
}

// One rank aborts while the others are in a call that it never makes.
func TestAbort(t *testing.T) {
	cause := errors.New("disk full")
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		if c.Rank() == 2 {
			go c.Abort(cause)
			<-c.Done()
			assert.ErrorIs(t, c.Err(), cause)
		} else {
			e := wants(t, sum(ctx, c), ccl.ErrAborted)
			assert.Equal(t, 2, e.Peer)
			assert.Equal(t, fmt.Sprintf("ccl: rank %d: AllReduce #2 int64 x 1 sum: aborted by rank 2: disk full", c.Rank()), callSite.ReplaceAllString(e.Error(), ""))
		}
		// Once and for good.
		for range 2 {
			e := wants(t, ccl.Barrier(ctx, c), ccl.ErrAborted)
			assert.Equal(t, 2, e.Peer)
			assert.Equal(t, ccl.KindBarrier, e.Mine.Kind)
		}
		wants(t, c.Err(), ccl.ErrAborted)
	})
}

// A context that is canceled fails the Comm for all, and its rank is named.
func TestCancel(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		switch c.Rank() {
		case 1:
			ctx, cancel := context.WithCancel(ctx)
			go cancel()
			err := sum(ctx, c)
			wants(t, err, ccl.ErrCanceled)
			assert.ErrorIs(t, err, context.Canceled)
		case 2: // never comes
			<-c.Done()
			assert.Equal(t, 1, wants(t, c.Err(), ccl.ErrCanceled).Peer)
		default:
			assert.Equal(t, 1, wants(t, sum(ctx, c), ccl.ErrCanceled).Peer)
		}
	})
}

func TestContextThatHasEnded(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 0 {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			err := sum(ctx, c)
			wants(t, err, ccl.ErrCanceled)
			assert.ErrorIs(t, err, context.Canceled)
			return
		}
		assert.Equal(t, 0, wants(t, sum(ctx, c), ccl.ErrCanceled).Peer)
	})
}

// Ranks 2 and 3 do not come: the deadline of rank 0's context passes, when rank 1 is in the call.
func TestDeadline(t *testing.T) {
	var all [4]atomic.Pointer[ccl.Comm]
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		all[c.Rank()].Store(c)
		works(ctx, t, c)
		meet(ctx)
		switch c.Rank() {
		case 0:
			sleeps(t, all[1].Load())
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			err := sum(ctx, c)
			e := wants(t, err, ccl.ErrTimeout)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assertMissing(t, c, e)
		case 1:
			e := wants(t, sum(ctx, c), ccl.ErrTimeout)
			assert.Contains(t, []int{0, 2, 3}, e.Peer) // who gave up, or who did not come
		default:
			<-c.Done()
			wants(t, c.Err(), ccl.ErrTimeout)
		}
	})
}

// Options.Timeout ends a call that waits for ranks 2 and 3. It is so long that ranks 0 and 1 are both in the call by then,
// on a busy machine too.
func TestTimeout(t *testing.T) {
	o := &ccl.Options{Timeout: time.Second}
	var told atomic.Int32
	everywhere(t, 4, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		switch c.Rank() {
		case 0, 1:
			if e := wants(t, sum(ctx, c), ccl.ErrTimeout); len(e.Missing) > 0 {
				assertMissing(t, c, e)
				told.Add(1)
			}
		default:
			<-c.Done()
			wants(t, c.Err(), ccl.ErrTimeout)
		}
	})
	assert.GreaterOrEqual(t, told.Load(), int32(len(places)))
}

// assertMissing checks that e lists ranks 2 and 3: on one host all that are absent,
// between hosts at least one, and nobody else.
func assertMissing(t *testing.T, c *ccl.Comm, e *ccl.Error) {
	t.Helper()
	if c.Place().Nodes == 1 {
		assert.Equal(t, []int{2, 3}, e.Missing, "%v", e)
		return
	}
	assert.NotEmpty(t, e.Missing)
	assert.Subset(t, []int{2, 3}, e.Missing, "%v", e)
}

// A rank that closed is named by those who call on.
func TestPeerClosed(t *testing.T) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("used=%v", used), func(t *testing.T) {
			everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				if used {
					works(ctx, t, c)
					meet(ctx)
				}
				if c.Rank() == 1 {
					assert.NoError(t, c.Close())
					return
				}
				e := wants(t, sum(ctx, c), ccl.ErrClosed)
				assert.Equal(t, 1, e.Peer, "%v", e)
				assert.Contains(t, e.Error(), "rank 1 has closed the Comm")
			})
		})
	}
}

// A rank that has done its part may close: its peers get what it gave.
func TestCloseAfterTheLastCall(t *testing.T) {
	for range 20 {
		everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			x := make([]int, 1<<10)
			if c.Rank() == 0 {
				for i := range x {
					x[i] = i
				}
			}
			if assert.NoError(t, ccl.Broadcast(ctx, c, x, 0)) {
				assert.Equal(t, len(x)-1, x[len(x)-1])
			}
			assert.NoError(t, c.Close())
		})
	}
}

// Every call on a closed Comm says so, and so does what was queued.
func TestClosed(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(nil)
		assert.NoError(t, c.Close())
		x := []int{1}
		one := []int{1}
		b := ccl.BufOf(x)
		for _, tc := range []struct {
			op  string
			err error
		}{
			{"AllReduce", ccl.AllReduce(ctx, c, x, x, ccl.Sum)},
			{"Reduce", ccl.Reduce(ctx, c, x, x, ccl.Sum, 0)},
			{"ReduceScatter", ccl.ReduceScatter(ctx, c, x, x, ccl.Sum)},
			{"ReduceScatterV", ccl.ReduceScatterV(ctx, c, x, x, one, ccl.Sum)},
			{"Broadcast", ccl.Broadcast(ctx, c, x, 0)},
			{"AllGather", ccl.AllGather(ctx, c, x, x)},
			{"AllGatherV", ccl.AllGatherV(ctx, c, x, one, x)},
			{"Gather", ccl.Gather(ctx, c, x, x, 0)},
			{"GatherV", ccl.GatherV(ctx, c, x, one, x, 0)},
			{"Scatter", ccl.Scatter(ctx, c, x, x, 0)},
			{"ScatterV", ccl.ScatterV(ctx, c, x, x, one, 0)},
			{"AllToAll", ccl.AllToAll(ctx, c, x, x)},
			{"AllToAllV", ccl.AllToAllV(ctx, c, x, one, x, one)},
			{"Send", ccl.Send(ctx, c, x, 0)},
			{"Recv", ccl.Recv(ctx, c, x, 0)},
			{"SendRecv", ccl.SendRecv(ctx, c, x, 0, x, 0)},
			{"Barrier", ccl.Barrier(ctx, c)},
			{"Split", second(c.Split(ctx, 0, 0))},
			{"MakeSlice", second(ccl.MakeSlice[int](ctx, c, 1))},
			{"AllReduce", q.AllReduce(b, b, ccl.Sum).Wait(ctx)},
			{"Barrier", q.Barrier().Wait(ctx)},
			{"Group", q.Group(func(ccl.Queue) error { return nil }).Wait(ctx)},
		} {
			e := wants(t, tc.err, ccl.ErrClosed)
			assert.Equal(t, tc.op, e.Op)
			assert.Equal(t, fmt.Sprintf("ccl: rank 0: %s: the Comm is closed", tc.op), e.Error())
		}
	})
}

func second[T any](_ T, err error) error { return err }

// OnFailure runs once on each rank, and to its end before a call returns the failure.
func TestOnFailure(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			const n = 3
			var started, ended [n]atomic.Int32
			var first [n]atomic.Pointer[ccl.Error]
			opt := func(r int) *ccl.Options {
				return &ccl.Options{OnFailure: func(e *ccl.Error) {
					started[r].Add(1)
					first[r].Store(e)
					for range 1000 { // give a call that does not wait its chance
						runtime.Gosched()
					}
					ended[r].Add(1)
				}}
			}
			world(t, n, p.hosts(n), opt, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				r := c.Rank()
				works(ctx, t, c)
				meet(ctx)
				var wg sync.WaitGroup
				if r == 1 {
					for range 3 {
						wg.Go(func() { c.Abort(errors.New("enough")) })
					}
					<-c.Done()
				}
				for range 3 {
					wants(t, sum(ctx, c), ccl.ErrAborted)
					assert.Equal(t, int32(1), ended[r].Load(), "rank %d", r)
				}
				wg.Wait()
				assert.Equal(t, 1, first[r].Load().Peer)
			})
			for r := range n {
				assert.Equal(t, int32(1), started[r].Load(), "rank %d", r)
			}
		})
	}
}

// OnFailure may use the Comm, as long as it does not wait for itself.
func TestOnFailureMayLookAndClose(t *testing.T) {
	var c *ccl.Comm
	told := make(chan error, 1)
	o := &ccl.Options{OnFailure: func(e *ccl.Error) {
		before := c.Err()
		c.Abort(errors.New("again")) // the first cause stands
		c.Close()
		told <- before
	}}
	c, err := ccl.NewComm(t.Context(), alone{}, o)
	assert.NoError(t, err)
	c.Abort(errors.New("enough"))
	e := wants(t, <-told, ccl.ErrAborted)
	assert.ErrorContains(t, e, "enough")
	wants(t, sum(t.Context(), c), ccl.ErrClosed)
}

// Options that must agree and do not are named on all ranks.
func TestOptionsDiffer(t *testing.T) {
	for _, tc := range []struct {
		field string
		odd   ccl.Options
	}{
		{"Backend", ccl.Options{Backend: "cpu"}},
		{"Staged", ccl.Options{Staged: true}},
		{"Timeout", ccl.Options{Timeout: time.Minute}},
		{"PeerTimeout", ccl.Options{PeerTimeout: time.Minute}},
		{"Check", ccl.Options{Check: ccl.CheckStrict}},
		{"RankOrder", ccl.Options{RankOrder: true}},
		{"Wire (GOCCL_WIRE)", ccl.Options{Wire: "auth"}},
	} {
		t.Run(tc.field, func(t *testing.T) {
			errs := refusedComms(t, 3, func(r int) *ccl.Options {
				if r == 2 {
					return &tc.odd
				}
				return nil
			})
			for r, err := range errs {
				e := wants(t, err, ccl.ErrVersion)
				assert.Equal(t, r, e.Rank)
				assert.Equal(t, 2, e.Peer)
				assert.ErrorContains(t, err, "rank 2 differs from rank 0: "+tc.field+"=")
			}
		})
	}
}

// Fields that are each rank's own may differ.
func TestOptionsMayDiffer(t *testing.T) {
	device := 3
	world(t, 2, nil, func(r int) *ccl.Options {
		if r == 0 {
			return nil
		}
		return &ccl.Options{Device: &device, OnFailure: func(*ccl.Error) {}}
	}, works)
}
