package watch

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/call"
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
	s := sharing(t, 2)
	noticed, goOn := make(chan bool), make(chan bool)
	here, there := unixPair(t)
	s.WatchEnd(here, 1, nil, func(first int, why error) {
		assert.Equal(t, []any{1, ErrEnded}, []any{first, why})
		close(noticed)
		<-goOn
		assert.True(t, s.Log.Append(event.New(99, call.Aborted, -1, -1, 0, nil)))
	})
	there.Close()
	<-noticed
	over := make(chan struct{})
	go func() {
		s.Reset()
		close(over)
	}()
	select { // without its wait, Reset is done by then
	case <-over:
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		require.Fail(t, "Reset does not return")
	}
	require.Nil(t, s.Host)
}
