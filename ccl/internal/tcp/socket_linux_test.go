//go:build !386 && !s390x

package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/auth"
)

// The kernel says how far away a peer is; one on this host is near.
func TestRoundTrip(t *testing.T) {
	a, b := wired(t, auth.Plain)
	defer b.Close()
	for _, c := range []*Conn{a, b} {
		require.Less(t, c.RoundTrip(), time.Minute)
	}
	a.Close()
	require.Zero(t, a.RoundTrip())
}

func TestSocketOptions(t *testing.T) {
	ta, tb := connected(t)
	defer tb.Close()
	c, err := newConn(ta)
	require.NoError(t, err)
	defer c.Close()

	delay, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	require.NoError(t, err)
	require.NotZero(t, delay)
	flags, err := unix.FcntlInt(uintptr(c.fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
	flags, err = unix.FcntlInt(uintptr(c.fd), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.O_NONBLOCK)

	// Where the kernel has reno, a connection within the host uses it.
	have := unix.SetsockoptString(c.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") == nil
	ta, tb2 := connected(t)
	defer tb2.Close()
	d, err := newConn(ta)
	require.NoError(t, err)
	defer d.Close()
	if name, err := unix.GetsockoptString(d.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); have && err == nil {
		require.Equal(t, "reno", name)
	}
}
