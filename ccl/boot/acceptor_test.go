package boot

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was admitted is closed with the acceptor, and what comes later is turned away.
func TestDoorShut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := newAcceptor(0)
	d.doors.open(l, noSecret)
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
