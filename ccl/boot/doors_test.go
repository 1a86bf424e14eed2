package boot

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

// What is in the handshake ends where the acceptor is deaf, and nothing more is let in.
func TestDoorDeafens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := new(doors)
	require.Zero(t, d.refused())
	o := d.open(l, noSecret)
	end, here := net.Pipe()
	late, tooLate := net.Pipe()
	require.NotNil(t, o.strangers.Admit(here))
	d.deafen()
	d.deafen() // twice does nothing
	require.Nil(t, o.strangers.Admit(tooLate))
	for _, c := range []net.Conn{end, late} {
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	second, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.Nil(t, d.open(second, noSecret))
	_, err = second.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "who is deaf opens nothing more")
}

// Both doors of a relay are found by their addresses, and what they refused counts together.
func TestDoors(t *testing.T) {
	d := new(doors)
	defer d.deafen()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil && ip != "127.0.0.1" {
			break // no IPv6 here
		}
		require.NoError(t, err)
		d.open(l, noSecret)
		require.EqualValues(t, l.Addr().(*net.TCPAddr).Port, d.portOn(netip.MustParseAddr(ip)))
	}
	require.Zero(t, d.portOn(netip.MustParseAddr("127.0.0.3")))
	var judged sync.WaitGroup
	defer judged.Wait() // each logs once it has counted, and later tests look at the log
	for _, o := range d.list {
		end, here := net.Pipe()
		defer end.Close()
		s := o.strangers.Admit(here)
		judged.Go(func() { s.Judge(auth.ErrUnauthorized) })
	}
	require.Eventually(t, func() bool { return d.refused() == len(d.list) }, long, time.Millisecond)
}
