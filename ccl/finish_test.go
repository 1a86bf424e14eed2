package ccl_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// What the other ranks hear of one that leaves in its own way, by Finish and by Close, and what it gets itself.
func TestFinish(t *testing.T) {
	why := errors.New("no such file")
	for _, tc := range []struct {
		name  string
		leave func(ctx context.Context, c *ccl.Comm) error // on rank 1
		code  ccl.Code
		want  string // on rank 0
		own   error
		panic any
	}{
		{"an error", func(_ context.Context, c *ccl.Comm) (err error) {
			defer c.Finish(&err)
			return why
		}, ccl.ErrAborted, "aborted by rank 1: no such file", why, nil},
		{"a panic", func(_ context.Context, c *ccl.Comm) (err error) {
			defer c.Finish(&err)
			panic("out of range")
		}, ccl.ErrAborted, "aborted by rank 1: panic at ccl/finish_test.go:32: out of range", nil, "out of range"},
		{"a panic, and Close alone", func(_ context.Context, c *ccl.Comm) error {
			defer c.Close()
			panic("out of range")
		}, ccl.ErrAborted, "aborted by rank 1: it was closed in a panic at ccl/finish_test.go:36", nil, "out of range"},
		{"nothing wrong", func(_ context.Context, c *ccl.Comm) (err error) {
			defer c.Finish(&err)
			return nil
		}, ccl.ErrClosed, "rank 1 has closed the Comm after Barrier #1", nil, nil},
		{"no error to say it in", func(_ context.Context, c *ccl.Comm) error {
			defer c.Finish(nil)
			return nil
		}, ccl.ErrClosed, "rank 1 has closed the Comm after Barrier #1", nil, nil},
		{"a rejected queued call", func(_ context.Context, c *ccl.Comm) (err error) {
			defer c.Finish(&err)
			c.On(nil).AllReduce(ccl.BufOf(make([]int, 1)), ccl.BufOf(make([]int, 2)), ccl.Sum)
			return nil
		}, ccl.ErrMismatch, "a queued call was rejected", ccl.ErrMismatch, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				require.NoError(t, ccl.Barrier(ctx, c))
				meet(ctx)
				if c.Rank() == 0 {
					x := []int{1}
					err := ccl.AllReduce(ctx, c, x, x, ccl.Sum)
					wants(t, err, tc.code)
					assert.ErrorContains(t, err, tc.want)
					return
				}
				defer func() { assert.Equal(t, tc.panic, recover()) }()
				err := tc.leave(ctx, c)
				if tc.own == nil {
					assert.NoError(t, err)
				}
				assert.ErrorIs(t, err, tc.own)
			})
		})
	}
}

// A goroutine that ends itself, as t.FailNow does, says so by its deferred Close. A Comm that was not made has nothing to finish.
func TestCloseWhileAGoroutineEnds(t *testing.T) {
	all := pair(t, nil)
	var left sync.WaitGroup
	left.Go(func() {
		u := new(testing.T)
		defer all[1].Close()
		u.SkipNow()
	})
	x := []int{1}
	err := ccl.AllReduce(t.Context(), all[0], x, x, ccl.Sum)
	wants(t, err, ccl.ErrAborted)
	assert.ErrorContains(t, err, "it was closed while its goroutine ended at ccl/finish_test.go:")
	left.Wait()
	all[0].Close()

	var none *ccl.Comm
	why := errors.New("no")
	func() {
		err = why
		defer none.Finish(&err)
	}()
	assert.Same(t, why, err)
}
