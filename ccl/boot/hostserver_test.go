package boot

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCrowdLocalLast is what lets a process end as soon as it has its answer: the
// others on whom it may shut the acceptor have confirmed theirs.
func TestCrowdLocalLast(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := newRootServer(selfJoin(0, 2), "job")
	local := h.start(l, nil)
	defer h.close()
	f := &dialer{job: "job", self: selfJoin(1, 2), find: func() (point, error) {
		return point{network: "tcp", addrs: []string{l.Addr().String()}}, nil
	}}
	other, _, err := f.dial(within(t, long))
	require.NoError(t, err)
	defer other.Close()
	for rank, conn := range []net.Conn{local, other} {
		_, err = conn.Write(frame{kind: frameJoin, rank: rank, data: selfJoin(rank, 2).encode()}.encode())
		require.NoError(t, err)
	}
	got, err := readFrame(other, maxVerdict)
	require.NoError(t, err)
	require.Equal(t, frameVerdict, got.kind)

	local.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err = readFrame(local, maxVerdict)
	require.Error(t, err, "told before the other has confirmed")
	local.SetReadDeadline(time.Time{})
	_, err = other.Write(frame{kind: frameAck}.encode())
	require.NoError(t, err)
	got, err = readFrame(local, maxVerdict)
	require.NoError(t, err)
	require.Equal(t, frameVerdict, got.kind)
}

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
	c := new(hostServer)
	for _, tc := range [][2]string{
		{"127.0.0.1", "invalid IP"},
		{"10.0.0.2", "10.0.0.2"},
		{"10.0.0.3", "10.0.0.2"},
	} {
		c.reached(from{local: tc[0]})
		require.Equal(t, tc[1], c.seen.String(), tc[0])
	}
}
