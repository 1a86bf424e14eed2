package cpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A datagram of another process rouses the monitor; one that comes after the end harms nobody.
func TestRinger(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].Site
	s.Procs = []int{0, 0}
	s.OpenRinger(func(l int) string { return fmt.Sprint(t.Name(), l) })
	ringer := s.Ringer.Load()
	require.NotNil(t, ringer)
	s.Look()
	ringer.Ring(1) // to a process that is not there
	ringer.Ring(0)
	require.Eventually(t, s.IsActive, 10*time.Second, time.Millisecond, "it was not rung")
	s.CloseRinger()
	ringer.Ring(0)
	s.Attending.Wait()

	s.OpenRinger(func(l int) string { return fmt.Sprint(t.Name(), l) }) // the name is free again
	require.NotNil(t, s.Ringer.Load())
	s.CloseRinger()
	s.Attending.Wait()
}
