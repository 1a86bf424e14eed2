package boot

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// TestDoorPending has more strangers than the table of those who may be in the handshake holds: the oldest goes.
func TestDoorPending(t *testing.T) {
	d := newDoor()
	var ends []net.Conn
	for range 3 {
		here, there := net.Pipe()
		defer here.Close()
		d.await(there)
		ends = append(ends, here)
	}
	d.dropOldest()
	require.Len(t, d.pending, 2)
	_, err := ends[0].Read(make([]byte, 1))
	require.Error(t, err)
	d.settle(d.pending[1])
	require.Len(t, d.pending, 1)
	d.deafen()
	require.Empty(t, d.pending)
	_, err = ends[1].Read(make([]byte, 1))
	require.Error(t, err)
}

// from is a connection that came to that address of this host.
type from struct {
	net.Conn
	local string
}

func (f from) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.local), 1))
}

// The first address of this host counts that another host reached by a handshake which succeeded.
func TestDoorJudges(t *testing.T) {
	d := newDoor()
	for _, tc := range []struct {
		local    string
		err      error
		seen     string
		rejected int
	}{
		{"10.0.0.1", errors.New("it hung up"), "invalid IP", 0},
		{"10.0.0.1", auth.ErrUnauthorized, "invalid IP", 1},
		{"127.0.0.1", nil, "invalid IP", 1},
		{"10.0.0.2", nil, "10.0.0.2", 1},
		{"10.0.0.3", nil, "10.0.0.2", 1},
		{"10.0.0.4", auth.ErrUnauthorized, "10.0.0.2", 2},
	} {
		d.judge(from{local: tc.local}, tc.err)
		require.Equal(t, tc.seen, d.seen.String(), "%+v", tc)
		require.Equal(t, tc.rejected, d.rejected, "%+v", tc)
	}
}

// What was admitted is closed with the door, and what comes later is turned away.
func TestDoorShut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := newDoor()
	d.open(l)
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
