package ccl

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lobby"
)

// Rank 0 listens at the loopback address while nobody comes from elsewhere, at the address that its job knows, or at the one from which
// it reaches the first guest of another host. What rank 0 does not reach cannot come.
func TestMeetAt(t *testing.T) {
	const unreachable = "rank 0's host (10.0.0.1, 10.1.0.1, 172.17.0.1) has no way to its host (192.168.9.9): no route"
	n := &ways{"here", addrs("10.0.0.1", "10.1.0.1", "172.17.0.1"), func(to netip.Addr) (netip.Addr, error) {
		switch {
		case netip.MustParsePrefix("10.0.0.0/16").Contains(to):
			return netip.MustParseAddr("10.0.0.1"), nil
		case netip.MustParsePrefix("10.1.0.0/16").Contains(to):
			return netip.MustParseAddr("10.1.0.1"), nil
		}
		return netip.Addr{}, errors.New("no route")
	}}
	guest := func(host string, of ...string) lobby.Guest { return lobby.Guest{At: []byte(host), Addrs: addrs(of...)} }
	for _, tc := range []struct {
		name   string
		of     string
		guests []lobby.Guest
		at     string
		unmet  []string
	}{
		{"nobody", "", nil, "127.0.0.1", nil},
		{"of this host", "", []lobby.Guest{guest("here", "10.0.0.1"), guest("here")}, "127.0.0.1", nil},
		{"of this host, in a job of several", "10.1.0.1", []lobby.Guest{guest("here", "10.0.0.1")}, "10.1.0.1", nil},
		{"of another", "", []lobby.Guest{guest("here", "10.0.0.1"), guest("there", "10.1.0.7")}, "10.1.0.1", nil},
		{"of two others", "", []lobby.Guest{guest("there", "10.0.0.7"), guest("third", "10.1.0.8")}, "10.0.0.1", nil},
		{"of another, in a job of several", "10.0.0.1", []lobby.Guest{guest("there", "10.1.0.7")}, "10.0.0.1", nil},
		{"of another, and the hosts of the job are one machine", "127.0.0.1", []lobby.Guest{guest("there", "10.1.0.7")}, "10.1.0.1", nil},
		{"by the second of its addresses", "", []lobby.Guest{guest("there", "192.168.9.9", "10.1.0.7")}, "10.1.0.1", nil},
		{"each host has a bridge of containers with one address", "", []lobby.Guest{guest("there", "172.17.0.1", "10.0.0.7")}, "10.0.0.1", nil},
		{"a container that shares the network", "", []lobby.Guest{guest("container", "10.0.0.1", "172.17.0.1")}, "127.0.0.1", nil},
		{"a sandbox without a network", "", []lobby.Guest{guest("sandbox")}, "127.0.0.1", nil},
		{"out of reach", "", []lobby.Guest{guest("here"), guest("there", "192.168.9.9")}, "127.0.0.1", []string{"", unreachable}},
		{"out of reach, and another is not", "", []lobby.Guest{guest("there", "192.168.9.9"), guest("third", "10.0.0.7")}, "10.0.0.1", []string{unreachable, ""}},
	} {
		var of netip.Addr
		if tc.of != "" {
			of = netip.MustParseAddr(tc.of)
		}
		at, unmet := n.meetAt(of, tc.guests)
		require.Equal(t, tc.at, at.String(), tc.name)
		require.Equal(t, tc.unmet, unmet, tc.name)
	}
	nameless := *n // as on systems that do not tell hosts apart
	nameless.identity = ""
	at, _ := nameless.meetAt(netip.Addr{}, []lobby.Guest{guest("", "10.0.0.1")})
	require.Equal(t, "127.0.0.1", at.String())
	at, _ = nameless.meetAt(netip.Addr{}, []lobby.Guest{guest("", "10.0.0.7")})
	require.Equal(t, "10.0.0.1", at.String())
}

func addrs(of ...string) (all []netip.Addr) {
	for _, a := range of {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// This host's own ways: none of its addresses is loopback, and it reaches no address that does not say on which link it is.
func TestOurWays(t *testing.T) {
	n := ourWays(nil)
	for _, a := range n.ours {
		require.True(t, a.IsGlobalUnicast(), "%v", a)
		from, err := n.toward(a)
		require.NoError(t, err)
		require.True(t, from.IsValid())
	}
	at, unmet := n.meetAt(netip.Addr{}, []lobby.Guest{{At: []byte("another"), Addrs: addrs("fe80::1")}})
	require.True(t, at.IsLoopback())
	require.Contains(t, unmet[0], "has no way to its host (fe80::1): ")
}
