package lent_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lent"
)

func TestResource(t *testing.T) {
	failed := errors.New("the driver is gone")
	times := 0
	r := lent.New("xpu", 1, "queue", 7, func(h uintptr) error {
		times++
		require.Equal(t, uintptr(7), h)
		return failed
	})
	require.Equal(t, 1, r.Dev)
	h, ok := r.Handle()
	require.True(t, ok)
	require.Equal(t, uintptr(7), h)
	h, err := r.Use()
	require.NoError(t, err)
	require.Equal(t, uintptr(7), h)

	require.Equal(t, failed, r.Close(), "what could not be given back is given up")
	_, ok = r.Handle()
	require.False(t, ok)
	_, err = r.Use()
	for _, err := range []error{err, r.Close()} {
		require.ErrorIs(t, err, lent.ErrClosed)
		require.Regexp(t, `^xpu: device 1: queue, made at \S+:\d+, was released at \S+:\d+: closed$`, err.Error())
	}
	require.Equal(t, 1, times)
	require.Equal(t, uintptr(7), r.H)
}

// What was never made is as what was given back.
func TestNone(t *testing.T) {
	var r *lent.Resource
	_, ok := r.Handle()
	require.False(t, ok)
	_, err := r.Use()
	require.ErrorIs(t, err, lent.ErrClosed)
	require.ErrorIs(t, r.Close(), lent.ErrClosed)
}

// Of two that give back at once one does it, the other hears of it.
func TestCloseAtOnce(t *testing.T) {
	for range 100 {
		freed := make(chan bool, 8)
		r := lent.New("cuda", 0, "event", 1, func(uintptr) error { freed <- true; return nil })
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.Close() })
		}
		wg.Wait()
		require.Len(t, freed, 1)
	}
}

func TestOnLeak(t *testing.T) {
	var mu sync.Mutex
	var told []string
	lent.OnLeak(func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	})
	defer lent.OnLeak(nil)
	forget()
	require.Eventually(t, func() bool {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		return len(told) > 0
	}, 20*time.Second, time.Millisecond)
	for range 10 {
		runtime.GC()
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, told, 1, "%q", told)
	require.Regexp(t, `^rocm: device 2: 8 bytes of device memory, made at \S+:\d+, was never released$`, told[0])
}

// forget makes three things: one that leaks, one that was given back, one that is another's.
//
//go:noinline
func forget() {
	free := func(uintptr) error { return nil }
	lent.New("rocm", 2, "8 bytes of device memory", 1, free)
	lent.New("rocm", 2, "stream", 2, free).Close()
	lent.Borrowed("rocm", 2, "stream", 3)
}
