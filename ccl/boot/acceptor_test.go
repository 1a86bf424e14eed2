package boot

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// from is a connection that came to that address of this host.
type from struct {
	net.Conn
	local string
}

func (f from) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.local), 1))
}

// The first address of this host counts that another host has reached.
func TestDoorReached(t *testing.T) {
	d := newAcceptor(2)
	for _, tc := range [][2]string{
		{"127.0.0.1", "invalid IP"},
		{"10.0.0.2", "10.0.0.2"},
		{"10.0.0.3", "10.0.0.2"},
	} {
		d.reached(from{local: tc[0]})
		require.Equal(t, tc[1], d.seen.String(), tc[0])
	}
}

// What was admitted is closed with the acceptor, and what comes later is turned away.
func TestDoorShut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := newAcceptor(2)
	d.doors.open(l, nil)
	first, here := net.Pipe()
	forgotten, gone := net.Pipe()
	late, tooLate := net.Pipe()
	require.True(t, d.admit(here))
	require.True(t, d.admit(gone))
	d.forget(gone)
	require.Len(t, d.conns, 1)
	d.shut()
	d.shut() // twice does nothing
	require.False(t, d.admit(tooLate))
	for _, c := range []net.Conn{first, forgotten, late} {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
