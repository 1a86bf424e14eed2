package boot

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/relay"
)

// unplug has the kernel drop all that comes to conn, and so answer nothing, as where its host has lost its network.
func unplug(t *testing.T, conn net.Conn) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop})
	}))
	require.NoError(t, err)
}

// The name of a host that vanishes without a word is free again after some seconds, for its next process.
func TestRelayForgetsLostHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits until a connection is taken for lost, after 5 s")
	}
	r, _ := relayed(t, nil)
	name := netip.MustParseAddrPort("192.0.2.7:20000")
	parks := func(id byte) (net.Conn, error) {
		conn, err := net.Dial("tcp", r.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		q := relay.Request{Kind: relay.Listen, ID: [16]byte{id}, Name: name}
		_, _, err = shake(t.Context(), conn, relay.Job, relay.Key(auth.Given([]byte(relaySecret))), q.Append(nil))
		return conn, err
	}
	lost, err := parks(1)
	require.NoError(t, err)
	unplug(t, lost)
	_, err = parks(2)
	require.ErrorContains(t, err, "another process listens at 192.0.2.7:20000")
	require.Eventually(t, func() bool { _, err := parks(2); return err == nil }, time.Minute, 100*time.Millisecond)
}
