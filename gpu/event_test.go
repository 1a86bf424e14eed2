//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func event[P gpu.Platform](t *testing.T, d gpu.Device[P]) *gpu.Event[P] {
	t.Helper()
	e, err := d.NewEvent()
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func TestEventTime(t *testing.T) {
	slow(t)
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, x := stream(t, d), alloc[int8](t, d, 1)
		start, end, began := event(t, d), event(t, d), time.Now()
		require.NoError(t, start.Record(s))
		require.NoError(t, x.SetOn(s, 1))
		require.NoError(t, end.Record(s))
		done, err := end.Query()
		require.NoError(t, err)
		_, early := end.Since(start)
		if time.Since(began) < 2*slowed { // else both may be over: this thread did not run
			require.False(t, done)
			require.ErrorContains(t, early, "device not ready")
		}
		require.NoError(t, end.Wait(t.Context()))
		require.NoError(t, end.Synchronize())
		done, err = end.Query()
		require.NoError(t, err)
		require.True(t, done)
		took, err := end.Since(start)
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, 2*slowed, "two operations lie between them")
	})
}

func TestEventOrdersStreams(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		if !gputest.Real() {
			t.Setenv("FAKE_DELAY_US", "20000")
		}
		late := stream(t, d)
		t.Setenv("FAKE_DELAY_US", "0")
		early := stream(t, d)
		x, h := alloc[int8](t, d, 1), host[int8](t, d, 1)
		mark, err := d.NewMark()
		require.NoError(t, err)
		require.NoError(t, x.SetOn(late, 5))
		require.NoError(t, mark.Record(late))
		require.NoError(t, early.WaitEvent(mark))
		require.NoError(t, x.GetOn(early, h))
		require.NoError(t, mark.Close(), "what waits for it still does")
		require.NoError(t, early.Synchronize())
		require.Equal(t, int8(5), h.Slice()[0])
	})
}

func TestEventRefused(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s := stream(t, d)
		e, err := d.NewMark()
		require.NoError(t, err)
		done, err := e.Query()
		require.NoError(t, err)
		require.True(t, done, "never recorded")
		require.NoError(t, e.Record(s))
		require.NoError(t, e.Synchronize())
		_, err = e.Since(e)
		require.ErrorContains(t, err, "invalid resource handle", "a mark has no time")
		require.ErrorIs(t, e.Record(nil), gpu.ErrClosed)
		_, err = e.Since(nil)
		require.ErrorIs(t, err, gpu.ErrClosed)
		require.NoError(t, e.Close())
		for _, err := range []error{e.Close(), e.Record(s), e.Synchronize(), e.Wait(t.Context()), s.WaitEvent(e)} {
			require.ErrorIs(t, err, gpu.ErrClosed)
		}
	})
	for _, e := range []*gputest.Event{nil, {}} {
		require.ErrorIs(t, e.Synchronize(), gpu.ErrClosed)
		require.ErrorIs(t, e.Close(), gpu.ErrClosed)
	}
}
