package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitWakes: a Wait of an hour ends with each thing it waits for.
func TestWaitWakes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		write bool
		fill  bool
		wake  func(t *testing.T, a, b stream)
	}{
		{"data", false, false, func(t *testing.T, _, b stream) { require.NoError(t, sendAll(b, []byte("x"))) }},
		{"data, writing", true, true, func(t *testing.T, _, b stream) { require.NoError(t, sendAll(b, []byte("x"))) }},
		{"room", true, true, func(t *testing.T, _, b stream) {
			_, err := b.TryRecv(make([]byte, 1<<20))
			require.NoError(t, err)
		}},
		{"room at once", true, false, func(*testing.T, stream, stream) {}},
		{"peer closes", false, false, func(_ *testing.T, _, b stream) { b.Close() }},
		{"peer aborts", false, false, func(_ *testing.T, _, b stream) { b.Abort() }},
		{"close", false, false, func(_ *testing.T, a, _ stream) { a.Close() }},
		{"abort", false, false, func(_ *testing.T, a, _ stream) { a.Abort() }},
		{"abort, writing", true, true, func(_ *testing.T, a, _ stream) { a.Abort() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, a, b stream) {
				if tc.fill {
					fill(t, a)
				}
				woken := make(chan struct{})
				go func() {
					waitFor(a, time.Hour, tc.write)
					close(woken)
				}()
				tc.wake(t, a, b)
				// The kernel decides how much must be received before there is room.
				for room := tc.name == "room"; room; {
					select {
					case <-woken:
						room = false
					default:
						tc.wake(t, a, b)
					}
				}
				<-woken
				b.Abort() // what was filled in is not to be flushed
			})
		})
	}
}

func TestWaitEnds(t *testing.T) {
	eachForm(t, func(t *testing.T, a, _ stream) {
		waitFor(a, time.Millisecond, false)
		waitFor(a, time.Nanosecond, false)
		waitFor(a, 0, false)
		waitFor(a, -1, false)
	})
}
