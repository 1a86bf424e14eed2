//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
)

// heard counts what an observer is told.
type heard struct {
	over                                               bool
	asked, passed, closing, capturing, ended, launched int
	on                                                 []uintptr
}

func (h *heard) Live() bool { return !h.over }

func (h *heard) Syncing() func() {
	h.asked++
	return func() { h.passed++ }
}

func (h *heard) Closing() { h.closing++ }

func (h *heard) Capturing(bool) func() func(on interface{ Handle() (uintptr, bool) }) {
	h.capturing++
	return func() func(on interface{ Handle() (uintptr, bool) }) {
		h.ended++
		return func(on interface{ Handle() (uintptr, bool) }) {
			h.launched++
			at, _ := on.Handle()
			h.on = append(h.on, at)
		}
	}
}

// No capture begins while somebody asks for an event, and nobody may ask while one is under way.
func TestHoldCaptures(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s := stream(t, d)
		require.True(t, rt.HoldCaptures())
		began := make(chan error)
		go func() { began <- s.BeginCapture() }()
		select {
		case <-began:
			t.Fatal("a capture began")
		case <-time.After(20 * time.Millisecond):
		}
		require.False(t, rt.Capturing())
		rt.ReleaseCaptures()
		require.NoError(t, <-began)
		require.False(t, rt.HoldCaptures())
		g, err := s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, g.Close())
		require.True(t, rt.HoldCaptures())
		rt.ReleaseCaptures()
	})
}

// TestObserve: whoever asks is told what had been issued when the question began, of captures on any stream, launches on any other,
// and of the end; and nothing once it is not live any more.
func TestObserve(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, other := stream(t, d), stream(t, d)
		var h heard
		s.Observe(&h)
		require.NoError(t, s.Synchronize())
		done, err := s.Query()
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, other.Synchronize())
		require.Equal(t, heard{asked: 2, passed: 2}, h)

		require.False(t, rt.Capturing())
		require.NoError(t, other.BeginCapture())
		require.True(t, rt.Capturing())
		require.Error(t, other.BeginCapture())
		g, err := other.EndCapture()
		require.NoError(t, err)
		require.False(t, rt.Capturing())
		_, err = other.EndCapture()
		require.Error(t, err)
		require.False(t, rt.Capturing())
		require.NoError(t, g.Launch(s))
		require.NoError(t, g.Launch(other))
		a, _ := s.Handle()
		b, _ := other.Handle()
		require.Equal(t, heard{asked: 2, passed: 2, capturing: 1, ended: 1, launched: 2, on: []uintptr{a, b}}, h)

		third, err := d.NewStream()
		require.NoError(t, err)
		third.Observe(&h)
		require.NoError(t, third.BeginCapture())
		require.NoError(t, third.Close()) // in a capture
		require.False(t, rt.Capturing())
		require.Equal(t, [2]int{1, 3}, [2]int{h.closing, h.capturing})

		h = heard{over: true}
		require.NoError(t, s.Synchronize())
		require.NoError(t, g.Close())
		require.Equal(t, heard{over: true}, h)
	})
}
