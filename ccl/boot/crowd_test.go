package boot

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCrowdLocalLast is what lets a process end as soon as it has its answer: the
// others on whom it may shut the door have confirmed theirs.
func TestCrowdLocalLast(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := newHub(selfJoin(0, 2), "job", nil)
	local := h.start(l)
	defer h.close()
	f := &finder{job: "job", self: selfJoin(1, 2), find: func() (point, error) {
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

// TestCrowdPending is a crowd of strangers larger than the table of those who may
// be in the handshake: the oldest goes.
func TestCrowdPending(t *testing.T) {
	c := newCrowd(selfJoin(0, 2), "job", nil)
	var ends []net.Conn
	for range 3 {
		here, there := net.Pipe()
		defer here.Close()
		c.pending = append(c.pending, there)
		ends = append(ends, here)
	}
	c.dropOldest()
	require.Len(t, c.pending, 2)
	_, err := ends[0].Read(make([]byte, 1))
	require.Error(t, err)
	c.settle(c.pending[1])
	require.Len(t, c.pending, 1)
	c.deafen()
	require.Empty(t, c.pending)
	_, err = ends[1].Read(make([]byte, 1))
	require.Error(t, err)
}
