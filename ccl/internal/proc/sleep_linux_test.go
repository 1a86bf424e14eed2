package proc

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A thread sleeps while the lower half of the word is what it was, is woken by a store with WakeSleeper after it, and does
// not sleep where the word has changed before.
func TestSleepWhile(t *testing.T) {
	var word atomic.Uint64
	word.Store(7<<32 | 1)
	SleepWhile(&word, 7<<32|2, 0) // another value: no sleep, or this test would hang

	began := time.Now()
	for time.Since(began) < time.Millisecond { // it may return early
		SleepWhile(&word, 8<<32|1, time.Millisecond) // the upper half does not count
	}

	done := make(chan struct{})
	go func() {
		for word.Load() == 7<<32|1 {
			SleepWhile(&word, 7<<32|1, 0)
		}
		close(done)
	}()
	word.Store(7<<32 | 3)
	WakeSleeper(&word)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		require.Fail(t, "not woken")
	}
}

// A sleep whose limit is over ends.
func TestSleepEnds(t *testing.T) {
	var word atomic.Uint64
	done := make(chan struct{})
	go func() { SleepWhile(&word, 0, time.Millisecond); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the limit has no effect")
	}
}
