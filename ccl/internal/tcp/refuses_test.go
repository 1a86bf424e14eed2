package tcp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A port is refused once nobody listens there, and not before. A process that is ending may still listen for a moment.
func TestRefuses(t *testing.T) {
	n := &Node{ctx: t.Context()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := netip.MustParseAddrPort(l.Addr().String())
	assert.False(t, n.Refuses(addr, 20*time.Millisecond))
	require.NoError(t, l.Close())
	assert.True(t, n.Refuses(addr, 10*time.Second))
	l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked := make(chan bool, 1)
	go func() { asked <- n.Refuses(netip.MustParseAddrPort(l.Addr().String()), time.Minute) }()
	conn, err := l.Accept() // it has asked once
	require.NoError(t, err)
	conn.Close()
	require.NoError(t, l.Close())
	assert.True(t, <-asked)
	assert.False(t, n.Refuses(netip.AddrPort{}, time.Second), "no address")
}
