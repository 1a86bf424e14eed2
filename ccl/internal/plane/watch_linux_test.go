package plane

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// unixPair are the ends of a connection.
func unixPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	conn := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "")
		defer f.Close()
		c, err := net.FileConn(f)
		require.NoError(t, err)
		return c.(*net.UnixConn)
	}
	return conn(fds[0]), conn(fds[1])
}

// A try at sharing memory is given up in the moment in which the end of another process is noticed. The memory stays until
// that has been written down there.
func TestGiveUpWaitsForTheWatch(t *testing.T) {
	h, err := sharedHost(nil)
	require.NoError(t, err)
	off, err := h.Alloc(pulseBytes(2))
	require.NoError(t, err)
	boardOf(h).pulses.Store(off)
	j := EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	s.Here.open(h)
	require.NoError(t, s.Here.showPulse(h))
	require.True(t, boardOf(h).log.Append(&event.Event{Comm: 99, Code: uint8(call.Aborted), Peer: -1}, 0, nil)) // so that there is something to read
	s.Job.Order.Lock()                                                                                          // and the watch comes to it when this test lets it
	here, there := unixPair(t)
	s.WatchEnd(here, 1, nil)
	there.Close()
	require.Eventually(t, func() bool {
		s.Job.mu.Lock()
		defer s.Job.mu.Unlock()
		return s.Here.processes.others[0].gone
	}, 10*time.Second, time.Millisecond)
	over := make(chan struct{})
	go func() {
		s.reset()
		close(over)
	}()
	select { // without its wait, giveUp is done by then
	case <-over:
	case <-time.After(50 * time.Millisecond):
	}
	s.Job.Order.Unlock() // what the watch reads now must be there
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		require.Fail(t, "giveUp does not return")
	}
	require.Nil(t, s.Here.Host)
	s.Here.Host = PrivateHost()
	j.Leave()
}
