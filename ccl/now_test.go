package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A call on Now is over when it is issued, in its place among the queued ones; so is a Group; Do runs at once.
func TestNow(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q, x, y := c.On(ccl.Now), []int{1}, []int{0}
		ask(c.On(nil), x) // which comes first
		w := ask(q, x)
		assert.Equal(t, []int{4}, x)
		done, err := w.Test()
		assert.True(t, done)
		assert.NoError(t, err)
		var inner ccl.Work
		w = q.Group(func(g ccl.Queue) error {
			inner = g.Send(ccl.BufOf([]int{c.Rank() + 5}), 1-c.Rank())
			g.Recv(ccl.BufOf(y), 1-c.Rank())
			ask(g, x)
			wants(t, g.Do(func() error { return nil }).Wait(ctx), ccl.ErrArgument)
			return nil
		})
		assert.Equal(t, []int{6 - c.Rank()}, y)
		assert.Equal(t, []int{8}, x)
		assert.NoError(t, w.Wait(ctx))
		assert.NoError(t, inner.Wait(ctx))
		ran := false
		assert.NoError(t, q.Do(func() error { ran = true; return nil }).Wait(ctx))
		assert.True(t, ran)
		cause := errors.New("odd")
		assert.ErrorIs(t, q.Do(func() error { return cause }).Wait(ctx), cause)
		wants(t, q.Do(nil).Wait(ctx), ccl.ErrArgument)
		assert.NoError(t, c.On(nil).Do(func() error { x[0]++; return nil }).Wait(ctx))
		assert.Equal(t, []int{9}, x)
	})
}

// What Now refuses, and what fails on it, is as on any Queue.
func TestNowRefuses(t *testing.T) {
	world(t, 2, nil, func(int) *ccl.Options { return &ccl.Options{Timeout: 10 * time.Second} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(ccl.Now)
		if c.Rank() == 1 {
			e := wants(t, q.Broadcast(ccl.BufOf([]int{1}), 9).Wait(ctx), ccl.ErrArgument)
			assert.Same(t, e, q.Barrier().Wait(ctx))
		} else {
			wants(t, q.Barrier().Wait(ctx), ccl.ErrMismatch)
		}
		ran := false
		assert.Error(t, q.Do(func() error { ran = true; return nil }).Wait(ctx))
		assert.False(t, ran)
	})
	var zero ccl.Queue
	wants(t, zero.Do(func() error { return nil }).Wait(t.Context()), ccl.ErrArgument)
}

// The same code runs with and without overlap.
func ExampleQueue_Do() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		for _, s := range []ccl.Stream{ccl.Now, ccl.NewHostStream()} {
			q, x := c.On(s), []int{1}
			q.AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum)
			err := q.Do(func() error { x[0] *= 10; return nil }).Wait(ctx)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(x)
			}
		}
		return nil
	})
	// Output:
	// [20]
	// [20]
}
