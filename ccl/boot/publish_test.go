package boot

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

func TestRootAddr(t *testing.T) {
	n := rootAddr{Addrs: []string{"10.0.0.1:1", "[::1]:1"}, Secret: []byte(sesame)}
	got, err := parseRootAddr(n.encode())
	require.NoError(t, err)
	require.Equal(t, n, got)
	for bad, text := range map[string]string{
		"":                     "is garbled",
		"{}":                   "has 0 addresses",
		`{"failed":"no port"}`: "rank 0 failed: no port",
		`{"addrs":["` + strings.Repeat(`x","`, maxAddrs) + `y"]}`: "has 9 addresses",
	} {
		_, err := parseRootAddr([]byte(bad))
		require.ErrorIs(t, err, System)
		require.ErrorContains(t, err, text)
	}
}

func FuzzRootAddr(f *testing.F) {
	f.Add([]byte(`{"addrs":["10.0.0.1:1","[::1]:1"],"secret":"AA=="}`))
	f.Add([]byte(`{"failed":"no port"}`))
	f.Add([]byte(`{"addrs":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseRootAddr(b)
		if err != nil {
			require.ErrorIs(t, err, System)
			return
		}
		require.NotEmpty(t, n.Addrs)
		require.LessOrEqual(t, len(n.Addrs), maxAddrs)
		again, err := parseRootAddr(n.encode())
		require.NoError(t, err)
		require.Equal(t, n.encode(), again.encode())
	})
}

func TestAnnounceAt(t *testing.T) {
	for _, oneHost := range []bool{true, false} {
		for _, secret := range []auth.Secret{{}, secretOf(sesame)} {
			m := &joinConfig{secret: secret}
			l, n, err := m.announceAt(t.Context(), oneHost)
			require.NoError(t, err)
			require.Equal(t, secret.IsZero(), n.Secret != nil) // one that all have is not written down
			require.NotEmpty(t, n.Addrs)
			for _, a := range n.Addrs {
				c, err := net.Dial("tcp", a)
				require.NoError(t, err)
				c.Close()
			}
			if oneHost {
				require.Equal(t, []string{l.Addr().String()}, n.Addrs)
				require.True(t, addrOf(l.Addr()).IsLoopback())
			}
			l.Close()
		}
	}
}
