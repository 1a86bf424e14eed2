package boot

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host without IPv4 has another loopback address.
func TestListenHere(t *testing.T) {
	const notOurs = "192.0.2.1:0" // TEST-NET-1, RFC 5737
	l, err := listenHere(notOurs, "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.True(t, addrOf(l.Addr()).IsLoopback())
	_, err = listenHere(notOurs, "localhost:nonsense")
	require.ErrorContains(t, err, "192.0.2.1")
}

// A listener that this host reaches is no error, and the attempt leaves nothing in its queue.
func TestReachHere(t *testing.T) {
	noLeaks(t)
	l, err := listenHere("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, reachHere(l))
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	require.Equal(t, client.LocalAddr().String(), server.RemoteAddr().String())
}

func TestCutOff(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENETUNREACH: true, syscall.EHOSTUNREACH: true, syscall.ECONNREFUSED: false, syscall.ETIMEDOUT: false,
	} {
		require.Equal(t, want, cutOff(fmt.Errorf("planted: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)})), err)
	}
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "10.0.0.1:1": false, "c1:1": false, "x": false} {
		require.Equal(t, want, here(addr), addr)
	}
}
