package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// told waits for what OnDone tells.
func told(t *testing.T, w ccl.Work) error {
	t.Helper()
	ch := make(chan error, 2)
	w.OnDone(func(err error) { ch <- err })
	select {
	case err := <-ch:
		return err
	case <-time.After(long):
		t.Fatal("OnDone does not call")
		return nil
	}
}

// Each call tells its end once, in the order of the queue, and finds its result there; a call that has ended tells at once.
func TestOnDone(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		const calls = 100
		var mu sync.Mutex
		var order []int
		q, x := c.On(nil), make([][]int, calls)
		var last ccl.Work
		for i := range x {
			x[i] = []int{i + c.Rank()}
			last = q.AllReduce(ccl.BufOf(x[i]), ccl.InPlace(), ccl.Sum)
			last.OnDone(func(err error) {
				mu.Lock()
				defer mu.Unlock()
				assert.NoError(t, err)
				assert.Equal(t, 2*i+1, x[i][0])
				order = append(order, i)
			})
		}
		require.NoError(t, told(t, last))
		require.NoError(t, last.Wait(ctx))
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, order, calls)
		for i, n := range order { // what ended before OnDone came has told at once, before OnDone of the next
			require.Equal(t, i, n)
		}
		before := 0
		last.OnDone(func(err error) { before++ })
		require.Equal(t, 1, before, "the call has ended: f runs within OnDone")
		last.OnDone(nil)
	})
}

// It tells of a Group, of what Do runs, of calls on Now and of the zero Work.
func TestOnDoneOfOthers(t *testing.T) {
	cause := errors.New("no batch left")
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		s := ccl.NewHostStream()
		hold := make(chan struct{})
		first := s.Do(func() error { <-hold; return nil })
		inner := ccl.Work{}
		whole := c.On(s).Group(func(g ccl.Queue) error {
			inner = ask(g, []int{1})
			early := make(chan error, 1)
			inner.OnDone(func(err error) { early <- err })
			assert.ErrorIs(t, <-early, ccl.ErrArgument, "as Wait inside of the Group")
			ask(g, []int{2})
			return nil
		})
		last := s.Do(func() error { return cause })
		var n atomic.Int32
		for _, w := range []ccl.Work{first, whole, inner} {
			w.OnDone(func(err error) { assert.NoError(t, err); n.Add(1) })
		}
		last.OnDone(func(err error) { assert.ErrorIs(t, err, cause); n.Add(1) })
		assert.Zero(t, n.Load())
		close(hold)
		assert.ErrorIs(t, told(t, last), cause)
		assert.EqualValues(t, 4, n.Load())
		assert.NoError(t, told(t, ccl.Work{}))
		assert.NoError(t, told(t, ask(c.On(ccl.Now), []int{1})))
	})
}

// A function that ends its goroutine takes neither the functions after it along nor the calls that follow.
func TestOnDoneGoexit(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		s := ccl.NewHostStream()
		hold := make(chan struct{})
		s.Do(func() error { <-hold; return nil })
		w := ask(c.On(s), []int{1})
		w.OnDone(func(error) { runtime.Goexit() })
		second := make(chan error, 1)
		w.OnDone(func(err error) { second <- err })
		after := ask(c.On(s), []int{1})
		close(hold)
		assert.NoError(t, <-second)
		assert.NoError(t, after.Wait(ctx))
	})
}

// A failure tells each call that has not ended, after OnFailure, with what Wait returns; so does a rejected call.
func TestOnDoneFails(t *testing.T) {
	var failed [2]atomic.Bool
	world(t, 2, nil, func(r int) *ccl.Options {
		return &ccl.Options{OnFailure: func(*ccl.Error) { failed[r].Store(true) }}
	}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			meet(ctx)
			c.Abort(errors.New("enough"))
			return
		}
		q := c.On(nil)
		ch := make(chan error, 3)
		for range 3 { // the first is under way
			ask(q, []int{1}).OnDone(func(err error) {
				assert.True(t, failed[0].Load())
				ch <- err
			})
		}
		meet(ctx)
		for range 3 {
			wants(t, <-ch, ccl.ErrAborted)
		}
		wants(t, told(t, ask(q, []int{1})), ccl.ErrAborted)
	})
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		wants(t, told(t, c.On(nil).Broadcast(ccl.BufOf([]int{1}), 9)), ccl.ErrArgument)
	})
}

// OnDone itself allocates nothing.
func TestOnDoneAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q, x := c.On(nil), ccl.BufOf([]float32{1, 2})
		done := make(chan struct{}, 1)
		f := func(error) { done <- struct{}{} }
		call := func() {
			q.AllReduce(x, x, ccl.Sum).OnDone(f)
			<-done
		}
		for range 100 {
			call()
		}
		assert.Zero(t, testing.AllocsPerRun(200, call))
	})
}
