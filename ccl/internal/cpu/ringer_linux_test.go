package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A datagram of another process wakes the calls that sleep here; one that comes after the end harms nobody.
func TestRinger(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].site
	s.procs = []int{0, 0}
	s.openRinger([]byte(t.Name()))
	ringer := s.ringer.Load()
	require.NotNil(t, ringer)
	w := &waiter{}
	require.True(t, c[0].canRest(w, 1))
	require.False(t, c[0].canRest(&waiter{remote: true}, 1), "what comes over TCP rings nobody")
	c[0].rest(t.Context(), w, 1)
	done := make(chan bool)
	go func() {
		c[0].rest(t.Context(), w, 1)
		close(done)
	}()
	ringer.ring(1) // to a process that is not there
	ringer.ring(0)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not rung")
	}
	c[0].rise()
	s.closeRinger()
	ringer.ring(0)
	s.attending.Wait()
	require.False(t, c[0].canRest(w, 1))

	s.openRinger([]byte(t.Name())) // the name is free again
	require.NotNil(t, s.ringer.Load())
	s.closeRinger()
	s.attending.Wait()
}
