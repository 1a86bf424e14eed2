package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// Functions run one at a time, in order, and one that fails stops no other.
func TestDo(t *testing.T) {
	cause := errors.New("odd")
	s := ccl.NewHostStream()
	defer s.Close()
	var order []int
	var works []ccl.Work
	for i := range 100 {
		works = append(works, s.Do(func() error {
			order = append(order, i)
			if i%2 == 1 {
				return fmt.Errorf("task %d: %w", i, cause)
			}
			return nil
		}))
	}
	for i, w := range slices.Backward(works) {
		err := w.Wait(t.Context())
		if i%2 == 0 {
			assert.NoError(t, err)
			continue
		}
		e := wants(t, err, ccl.ErrBackend)
		assert.ErrorIs(t, err, cause)
		assert.Equal(t, fmt.Sprintf("ccl: Do: task %d: odd", i), e.Error())
		done, again := w.Test()
		assert.True(t, done)
		assert.ErrorIs(t, again, cause)
	}
	want := make([]int, 100)
	for i := range want {
		want[i] = i
	}
	assert.Equal(t, want, order)
}

func TestDoIsWaitedForWithAContext(t *testing.T) {
	s := ccl.NewHostStream()
	defer s.Close()
	gate := make(chan struct{})
	w := s.Do(func() error { <-gate; return nil })
	done, err := w.Test()
	assert.False(t, done)
	assert.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, w.Wait(ctx), ccl.ErrCanceled)
	close(gate)
	assert.NoError(t, w.Wait(t.Context()))
}

// What was issued ends; nothing more is taken; nothing runs when there is nothing.
func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		s := ccl.NewHostStream()
		assert.LessOrEqual(t, runtime.NumGoroutine(), before) // one of an earlier test may end just now
		gate := make(chan struct{})
		ran := false
		w := s.Do(func() error { <-gate; ran = true; return nil })
		assert.NoError(t, s.Close())
		assert.NoError(t, s.Close())
		late := s.Do(func() error { t.Error("ran after Close"); return nil })
		wants(t, late.Wait(t.Context()), ccl.ErrClosed)
		done, err := late.Test()
		assert.True(t, done)
		assert.ErrorIs(t, err, ccl.ErrClosed)
		h, ok := s.Handle()
		assert.Zero(t, h)
		assert.False(t, ok)
		close(gate)
		assert.NoError(t, w.Wait(t.Context()))
		assert.True(t, ran)
		until(t, "an idle stream has a goroutine", func() bool { return runtime.NumGoroutine() <= before })
	})
}

// A function may issue more to the stream it runs on.
func TestDoInDo(t *testing.T) {
	s := ccl.NewHostStream()
	defer s.Close()
	inner := make(chan ccl.Work, 1)
	assert.NoError(t, s.Do(func() error {
		inner <- s.Do(func() error { return nil })
		return nil
	}).Wait(t.Context()))
	assert.NoError(t, (<-inner).Wait(t.Context()))
}

// With one processor, too, what is issued begins at once, and not when the caller blocks or is preempted.
func TestBeginsAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := ccl.NewHostStream()
	defer s.Close()
	begun := 0
	for range 100 {
		var ran atomic.Bool
		w := s.Do(func() error { ran.Store(true); return nil })
		if ran.Load() {
			begun++
		}
		assert.NoError(t, w.Wait(t.Context()))
	}
	assert.Greater(t, begun, 50) // others' goroutines may come first
}
