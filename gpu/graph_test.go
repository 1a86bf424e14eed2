//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestGraph(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s := stream(t, d)
		x, y := alloc[int32](t, d, 100), alloc[int32](t, d, 100)
		h := host[int32](t, d, 100)
		require.NoError(t, y.Put(make([]int32, 100)))
		capturing, err := s.Capturing()
		require.NoError(t, err)
		require.False(t, capturing)

		require.NoError(t, s.BeginCapture())
		capturing, err = s.Capturing()
		require.NoError(t, err)
		require.True(t, capturing)
		require.NoError(t, y.CopyOn(s, x))
		require.NoError(t, y.GetOn(s, h))
		g, err := s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, s.Synchronize())
		got := make([]int32, 100)
		require.NoError(t, y.Get(got))
		require.Equal(t, make([]int32, 100), got, "captured, not run")

		for i := range 5 {
			require.NoError(t, x.Put(ramp(100, i)))
			require.NoError(t, g.Launch(s))
			require.NoError(t, s.Synchronize())
			require.Equal(t, ramp(100, i), h.Slice())
		}
		require.NoError(t, g.Launch(s))
		require.NoError(t, g.Close(), "what was launched still ends")
		require.NoError(t, s.Synchronize())
		require.ErrorIs(t, g.Close(), gpu.ErrClosed)
		require.ErrorIs(t, g.Launch(s), gpu.ErrClosed)
	})
}

func TestGraphRefused(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, x := stream(t, d), alloc[int32](t, d, 1)
		_, err := s.EndCapture()
		var failure *gpu.Error
		require.ErrorAs(t, err, &failure, "not begun")

		require.NoError(t, s.BeginCapture())
		require.Error(t, s.BeginCapture(), "twice")
		require.Error(t, s.Synchronize(), "what is captured does not run")
		_, err = s.EndCapture()
		require.ErrorAs(t, err, &failure, "that has broken the capture")
		capturing, err := s.Capturing()
		require.NoError(t, err)
		require.False(t, capturing)
		require.NoError(t, x.SetOn(s, 0))
		require.NoError(t, s.Synchronize(), "an ordinary stream again")
	})
	for _, g := range []*gputest.Graph{nil, {}} {
		require.ErrorIs(t, g.Launch(nil), gpu.ErrClosed)
		require.ErrorIs(t, g.Close(), gpu.ErrClosed)
	}
}

// Streams that wait for one another are captured together.
func TestGraphOfTwoStreams(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, side := stream(t, d), stream(t, d)
		fork, join := event(t, d), event(t, d)
		x, y, h := alloc[int32](t, d, 10), alloc[int32](t, d, 10), host[int32](t, d, 10)
		require.NoError(t, s.BeginCapture())
		require.NoError(t, fork.Record(s))
		require.NoError(t, side.WaitEvent(fork))
		capturing, err := side.Capturing()
		require.NoError(t, err)
		require.True(t, capturing)
		require.NoError(t, y.CopyOn(side, x))
		require.NoError(t, join.Record(side))
		require.NoError(t, s.WaitEvent(join))
		require.NoError(t, y.GetOn(s, h))
		g, err := s.EndCapture()
		require.NoError(t, err)
		defer g.Close()
		for i := range 3 {
			require.NoError(t, x.Put(ramp(10, i)))
			require.NoError(t, g.Launch(s))
			require.NoError(t, s.Synchronize())
			require.Equal(t, ramp(10, i), h.Slice())
		}

		require.NoError(t, s.BeginCapture())
		require.NoError(t, fork.Record(s))
		require.NoError(t, side.WaitEvent(fork))
		require.NoError(t, y.CopyOn(side, x))
		_, err = s.EndCapture()
		var failure *gpu.Error
		require.ErrorAs(t, err, &failure, "s does not wait for side")
		require.Equal(t, 904, failure.Code)
		require.NoError(t, side.Synchronize())
	})
}
