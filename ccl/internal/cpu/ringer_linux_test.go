package cpu

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A datagram of another process rouses the monitor; one that comes after the end harms nobody.
func TestRinger(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].rank.Site
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

// A stranger that has found the ringer's name, and sends to it without end, empty datagrams too, does not deafen it.
func TestRingerOfStrangers(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].rank.Site
	s.Procs = []int{0, 0}
	name := func(l int) string { return fmt.Sprint(t.Name(), l) }
	s.OpenRinger(name)
	ringer := s.Ringer.Load()
	require.NotNil(t, ringer)
	stranger, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: "@" + name(0), Net: "unixgram"})
	require.NoError(t, err)
	defer stranger.Close()
	for i := range 3000 {
		if _, err := stranger.Write(make([]byte, []int{0, 1, 4096}[i%3])); err != nil {
			require.ErrorIs(t, err, syscall.EAGAIN, "its queue is full")
		}
	}
	require.Eventually(t, func() bool { // once it has read some
		_, err := stranger.Write(nil)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	s.Look()
	require.Eventually(t, func() bool {
		ringer.Ring(0)
		return s.IsActive()
	}, 10*time.Second, time.Millisecond, "it was not rung")
	s.CloseRinger()
	s.Attending.Wait()
}
