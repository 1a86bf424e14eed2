package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A datagram of another process rouses the monitor; one that comes after the end harms nobody.
func TestRinger(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].site
	s.procs = []int{0, 0}
	s.openRinger([]byte(t.Name()))
	ringer := s.ringer.Load()
	require.NotNil(t, ringer)
	s.pace.stirred.Store(false)
	ringer.ring(1) // to a process that is not there
	ringer.ring(0)
	require.Eventually(t, s.pace.stirred.Load, 10*time.Second, time.Millisecond, "it was not rung")
	s.closeRinger()
	ringer.ring(0)
	s.attending.Wait()

	s.openRinger([]byte(t.Name())) // the name is free again
	require.NotNil(t, s.ringer.Load())
	s.closeRinger()
	s.attending.Wait()
}
