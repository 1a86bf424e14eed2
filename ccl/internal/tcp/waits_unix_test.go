//go:build unix && !aix

package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// TestWaitsWake: a wait of an hour for several streams ends with what any of them waits for, and with its end.
func TestWaitsWake(t *testing.T) {
	pair := func(t *testing.T) (a, b *Conn) {
		a, b = wired(t, auth.Plain)
		t.Cleanup(a.Abort)
		t.Cleanup(b.Abort)
		return a, b
	}
	for _, tc := range []struct {
		name  string
		write bool // of the second stream, which is full
		wake  func(t *testing.T, a, b *Conn)
	}{
		{"data", false, func(t *testing.T, _, b *Conn) { require.NoError(t, sendAll(b, []byte("x"))) }},
		{"the peer closes", false, func(_ *testing.T, _, b *Conn) { b.Close() }},
		{"the peer aborts", true, func(_ *testing.T, _, b *Conn) { b.Abort() }}, // which resets the connection
		{"close", true, func(_ *testing.T, a, _ *Conn) { a.Close() }},
		{"abort", false, func(_ *testing.T, a, _ *Conn) { a.Abort() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkLeaks(t)
			quiet, _ := pair(t)
			a, b := pair(t)
			if tc.write {
				fill(t, a)
			}
			var w Waits
			w.Add(quiet, false)
			w.Add(a, tc.write)
			woken := make(chan bool)
			go func() { woken <- w.Wait(time.Hour) }()
			tc.wake(t, a, b)
			require.True(t, <-woken)
			require.False(t, w.Wait(time.Hour), "its streams have been removed")
		})
	}
	t.Run("at once", func(t *testing.T) {
		a, b := pair(t)
		var w Waits
		require.False(t, w.Wait(time.Hour), "there is nothing to wait for")
		w.Add(a, true)
		require.True(t, w.Wait(time.Hour), "there is room")
		require.NoError(t, sendAll(b, []byte("xy")))
		require.NoError(t, recvAll(a, make([]byte, 1)))
		w.Add(a, false)
		require.True(t, w.Wait(time.Hour), "it has been received ahead")
		a.Close()
		w.Add(a, false)
		require.True(t, w.Wait(time.Hour), "it has ended")
	})
	t.Run("no longer", func(t *testing.T) {
		a, _ := pair(t)
		var w Waits
		require.Zero(t, testing.AllocsPerRun(10, func() {
			w.Add(a, false)
			if !w.Wait(time.Microsecond) {
				t.Error("it has not waited")
			}
		}))
	})
}
