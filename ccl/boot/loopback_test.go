package boot

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host without IPv4 has another loopback address.
func TestListenHere(t *testing.T) {
	const notOurs = "192.0.2.1:0" // TEST-NET-1, RFC 5737
	l, err := listenHere(os.Getenv, notOurs, "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.True(t, addrOf(l.Addr()).IsLoopback())
	_, err = listenHere(os.Getenv, notOurs, "localhost:nonsense")
	require.ErrorContains(t, err, "192.0.2.1")
}

// A listener that this host reaches is no error, and the attempt leaves nothing in its queue.
func TestReachHere(t *testing.T) {
	noLeaks(t)
	l, err := listenHere(os.Getenv, "127.0.0.1:0")
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
