package ccl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

func TestZeroWork(t *testing.T) {
	var w ccl.Work
	assert.NoError(t, w.Wait(t.Context()))
	done, err := w.Test()
	assert.True(t, done)
	assert.NoError(t, err)
}

// Test tells without waiting; when Wait's context ends first, the call goes on.
func TestWaitAndTest(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			meet(ctx) // until then rank 0's call cannot end
			works(ctx, t, c)
			return
		}
		x := []int{1, 0}
		w := ask(c.On(nil), x)
		done, err := w.Test()
		assert.False(t, done)
		assert.NoError(t, err)

		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		err = w.Wait(short)
		e := wants(t, err, ccl.ErrTimeout)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "Wait", e.Op)
		over, end := context.WithCancel(ctx)
		end()
		err = w.Wait(over)
		wants(t, err, ccl.ErrCanceled)
		assert.ErrorIs(t, err, context.Canceled)

		assert.NoError(t, c.Err())
		meet(ctx)
		assert.NoError(t, w.Wait(ctx))
		assert.NoError(t, w.Wait(over)) // it is complete: the context does not matter
		done, err = w.Test()
		assert.True(t, done)
		assert.NoError(t, err)
		assert.Equal(t, []int{2, 1}, x)
	})
}

// A Work may be waited for by any number of goroutines.
func TestWaitByMany(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x := []int{1}
		w := ask(c.On(nil), x)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.NoError(t, w.Wait(ctx)) })
		}
		wg.Wait()
		assert.Equal(t, []int{2}, x)
	})
}

// A failure ends every Wait, with the call it interrupted.
func TestWaitForAFailure(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			meet(ctx)
			c.Abort(errors.New("enough"))
			return
		}
		w := ask(c.On(nil), make([]int, 3))
		later := c.On(nil).Barrier()
		meet(ctx)
		for _, w := range []ccl.Work{w, later} {
			e := wants(t, w.Wait(ctx), ccl.ErrAborted)
			assert.Equal(t, "ccl: rank 0: AllReduce #1 int64 x 3 sum: aborted by rank 1: enough", callSite.ReplaceAllString(e.Error(), ""))
			done, err := w.Test()
			assert.True(t, done)
			assert.ErrorIs(t, err, ccl.ErrAborted)
		}
		wants(t, c.On(nil).Barrier().Wait(ctx), ccl.ErrAborted)
	})
}
