package boot

import (
	"net"
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
