//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// slowed is what each operation takes at least of streams that are made after slow.
const slowed = 50 * time.Millisecond

// slow makes streams that are made from now on take long for everything.
func slow(t *testing.T) {
	t.Helper()
	gputest.Fake(t, "the machine's devices cannot be slowed down")
	t.Setenv("FAKE_DELAY_US", strconv.FormatInt(slowed.Microseconds(), 10))
}

func TestStream(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, err := d.NewStream()
		require.NoError(t, err)
		h, ok := s.Handle()
		require.True(t, ok)
		require.NotZero(t, h)
		require.Zero(t, s.Device())
		done, err := s.Query()
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, s.Synchronize())
		require.NoError(t, s.Wait(t.Context()))
		require.NoError(t, s.Close())
		_, ok = s.Handle()
		require.False(t, ok)
		for _, err := range []error{s.Close(), s.Synchronize(), s.Wait(t.Context()), s.BeginCapture()} {
			require.ErrorIs(t, err, gpu.ErrClosed)
			require.ErrorContains(t, err, "device 0: stream, made at stream_test.go:")
		}
	})
}

func TestStreamWaits(t *testing.T) {
	slow(t)
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, x := stream(t, d), alloc[int8](t, d, 1)
		h, began := host[int8](t, d, 1), time.Now()
		require.NoError(t, x.SetOn(s, 3))
		require.NoError(t, x.GetOn(s, h))
		done, err := s.Query()
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		waited := s.Wait(ended)
		if time.Since(began) < 2*slowed { // else both may be over: this thread did not run
			require.False(t, done)
			require.ErrorIs(t, waited, context.Canceled)
		}
		require.NoError(t, s.Wait(t.Context()))
		require.Equal(t, int8(3), h.Slice()[0])
	})
}

// Put, Set and Get are done when they return, though the library's calls behind them may not be.
func TestCallsEnd(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		x, s, h := alloc[int32](t, d, 1000), stream(t, d), host[int32](t, d, 1000)
		for i := range 100 {
			require.NoError(t, x.Put(ramp(1000, i)))
			require.NoError(t, x.GetOn(s, h))
			require.NoError(t, s.Synchronize())
			require.Equal(t, ramp(1000, i), h.Slice())
			require.NoError(t, x.Set(0))
			require.NoError(t, x.GetOn(s, h))
			require.NoError(t, s.Synchronize())
			require.Equal(t, make([]int32, 1000), h.Slice())
		}
	})
}

func TestStreamOf(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s := stream(t, d)
		h, _ := s.Handle()
		same, err := d.StreamOf(h)
		require.NoError(t, err)
		x := alloc[int8](t, d, 4)
		require.NoError(t, x.SetOn(same, 9))
		require.NoError(t, same.Close())
		_, ok := same.Handle()
		require.False(t, ok)
		require.NoError(t, s.Synchronize(), "the stream itself is still there")
		got := make([]int8, 4)
		require.NoError(t, x.Get(got))
		require.Equal(t, []int8{9, 9, 9, 9}, got)

		first, err := d.StreamOf(0)
		require.NoError(t, err)
		h, ok = first.Handle()
		require.True(t, ok, "0 is the default stream")
		require.Zero(t, h)
		require.NoError(t, x.SetOn(first, 8))
		require.NoError(t, first.Synchronize())
	})
}

func TestNilStream(t *testing.T) {
	for _, s := range []*gputest.Stream{nil, {}} {
		_, ok := s.Handle()
		require.False(t, ok)
		require.ErrorIs(t, s.Synchronize(), gpu.ErrClosed)
		require.ErrorIs(t, s.Close(), gpu.ErrClosed)
		require.ErrorIs(t, s.WaitEvent(nil), gpu.ErrClosed)
		require.Equal(t, -1, s.Device())
	}
}
