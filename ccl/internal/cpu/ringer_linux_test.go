package cpu

import (
	"crypto/rand"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ringerName is what names the sockets of one ringer: of this run of the test alone, since another may be under way.
func ringerName(t *testing.T) func(local int) string {
	run := t.Name() + rand.Text()
	return func(l int) string { return fmt.Sprint(run, l) }
}

// A datagram of another process rouses the monitor; one that comes after the end harms nobody.
func TestRinger(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].rank.Site
	s.Here.Procs = []int{0, 0}
	name := ringerName(t)
	s.Here.OpenRinger(name)
	ringer := s.Here.Ends.Ringer.Load()
	require.NotNil(t, ringer)
	s.Job.Time.Coarse.Look()
	ringer.Ring(1) // to a process that is not there
	ringer.Ring(0)
	require.Eventually(t, s.Job.Time.Coarse.IsActive, 10*time.Second, time.Millisecond, "it was not rung")
	s.Here.CloseRinger()
	ringer.Ring(0)
	s.Here.Ends.Attending.Wait()

	s.Here.OpenRinger(name) // the name is free again
	require.NotNil(t, s.Here.Ends.Ringer.Load())
	s.Here.CloseRinger()
	s.Here.Ends.Attending.Wait()
}

// A stranger that has found the ringer's name, and sends to it without end, empty datagrams too, does not deafen it.
func TestRingerOfStrangers(t *testing.T) {
	c := twoOfAHost(t)
	s := c[0].rank.Site
	s.Here.Procs = []int{0, 0}
	name := ringerName(t)
	s.Here.OpenRinger(name)
	ringer := s.Here.Ends.Ringer.Load()
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
	s.Job.Time.Coarse.Look()
	require.Eventually(t, func() bool {
		ringer.Ring(0)
		return s.Job.Time.Coarse.IsActive()
	}, 10*time.Second, time.Millisecond, "it was not rung")
	s.Here.CloseRinger()
	s.Here.Ends.Attending.Wait()
}
