package tcp

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// What others may reach, the likeliest first: no loopback, nothing of one link alone, nothing that is down.
func TestReachable(t *testing.T) {
	addr := netip.MustParseAddr
	ifs := []iface{
		{"lo", true, true, []netip.Addr{addr("127.0.0.1"), addr("10.0.0.9")}}, {"docker0", true, false, []netip.Addr{addr("172.17.0.1")}},
		{"eth0", true, false, []netip.Addr{addr("fe80::1%eth0"), addr("2001:db8::1"), addr("10.0.0.1")}}, {"eth2", false, false, []netip.Addr{addr("10.3.0.1")}},
		{"eth1", true, false, []netip.Addr{addr("10.1.0.1"), addr("10.0.0.1")}},
	}
	for sel, want := range map[string][]netip.Addr{
		"":        {addr("10.0.0.1"), addr("10.1.0.1"), addr("2001:db8::1"), addr("172.17.0.1"), addr("10.0.0.9")},
		"eth1":    {addr("10.1.0.1"), addr("10.0.0.1")},
		"^docker": {addr("10.0.0.1"), addr("10.1.0.1"), addr("2001:db8::1"), addr("10.0.0.9")},
		"ib":      nil,
		"^":       nil,
	} {
		require.Equal(t, want, reachable(sel, ifs), sel)
	}
	var many iface
	many.up = true
	for i := range byte(100) {
		many.addrs = append(many.addrs, netip.AddrFrom4([4]byte{10, 0, 0, i}))
	}
	require.Equal(t, many.addrs[:maxReachable], reachable("", []iface{many}))
}

// A bridge that was made after the host's own interface does not come before that.
func TestOldestFirst(t *testing.T) {
	list := []net.Interface{{Index: 257, Name: "br0"}, {Index: 1, Name: "lo"}, {Index: 4, Name: "eth0"}}
	oldestFirst(list)
	require.Equal(t, []string{"lo", "eth0", "br0"}, []string{list[0].Name, list[1].Name, list[2].Name})
}

func TestPickFromTable(t *testing.T) {
	addr := netip.MustParseAddr
	lo := iface{"lo", true, true, []netip.Addr{addr("127.0.0.1"), addr("::1")}}
	eth0 := iface{"eth0", true, false, []netip.Addr{addr("fe80::1%eth0"), addr("2001:db8::1"), addr("10.0.0.1")}}
	eth1 := iface{"eth1", true, false, []netip.Addr{addr("10.1.0.1")}}
	ib0 := iface{"ib0", true, false, []netip.Addr{addr("10.2.0.1")}}
	down := iface{"eth2", false, false, []netip.Addr{addr("10.3.0.1")}}
	bare := iface{"hsn0", true, false, nil}
	docker := iface{"docker0", true, false, []netip.Addr{addr("172.17.0.1")}}
	six := iface{"six0", true, false, []netip.Addr{addr("fe80::6%six0"), addr("2001:db8::6")}}
	all := []iface{lo, docker, down, bare, eth0, eth1, ib0}
	to := func(from string) func(netip.Addr) (netip.Addr, error) {
		return func(netip.Addr) (netip.Addr, error) { return addr(from), nil }
	}
	peer := addr("10.1.0.9")

	for _, tc := range []struct {
		name   string
		sel    string
		toward netip.Addr
		route  func(netip.Addr) (netip.Addr, error)
		ifs    []iface
		addr   string
		ifname string
		err    string
	}{
		{name: "first", ifs: all, addr: "10.0.0.1", ifname: "eth0"},
		{name: "the route", ifs: all, toward: peer, route: to("10.1.0.1"), addr: "10.1.0.1", ifname: "eth1"},
		{name: "the route to this host", ifs: all, toward: addr("127.0.0.1"), route: to("127.0.0.1"), addr: "127.0.0.1", ifname: "lo"},
		{name: "the route of IPv6", ifs: all, toward: addr("2001:db8::9"), route: to("2001:db8::1"), addr: "2001:db8::1", ifname: "eth0"},
		{name: "the route by a link-local address", ifs: []iface{lo, six}, toward: addr("fe80::9%six0"), route: to("fe80::6%six0"), addr: "fe80::6%six0", ifname: "six0"},
		{name: "no route", ifs: all, toward: peer, route: func(netip.Addr) (netip.Addr, error) { return netip.Addr{}, errors.New("no route") }, addr: "10.0.0.1", ifname: "eth0"},
		{name: "no route, IPv6", ifs: all, toward: addr("2001:db8::9"), route: func(netip.Addr) (netip.Addr, error) { return netip.Addr{}, errors.New("no route") }, addr: "2001:db8::1", ifname: "eth0"},
		{name: "IPv6 only", ifs: []iface{lo, six}, addr: "2001:db8::6", ifname: "six0"},
		{name: "containers' bridge only", ifs: []iface{lo, docker}, addr: "172.17.0.1", ifname: "docker0"},
		{name: "loopback only", ifs: []iface{lo, down, bare}, addr: "127.0.0.1", ifname: "lo"},
		{name: "nothing", ifs: []iface{down, bare}, err: "tcp: no network interface is up and has an address, not even loopback; there are: eth2 (down 10.3.0.1), hsn0 (no address)"},
		{name: "none at all", err: "there are: none"},

		{name: "prefix", sel: "ib", ifs: all, addr: "10.2.0.1", ifname: "ib0"},
		{name: "prefixes", sel: "ib, eth1", ifs: all, addr: "10.1.0.1", ifname: "eth1"},
		{name: "prefix and route", sel: "eth", ifs: all, toward: peer, route: to("10.1.0.1"), addr: "10.1.0.1", ifname: "eth1"},
		{name: "prefix against route", sel: "ib", ifs: all, toward: peer, route: to("10.1.0.1"), addr: "10.2.0.1", ifname: "ib0"},
		{name: "loopback asked for", sel: "lo", ifs: all, addr: "127.0.0.1", ifname: "lo"},
		{name: "exact", sel: "=eth1", ifs: all, addr: "10.1.0.1", ifname: "eth1"},
		{name: "exact list", sel: "=eth9,ib0", ifs: all, addr: "10.2.0.1", ifname: "ib0"},
		{name: "exact is no prefix", sel: "=eth", ifs: []iface{lo, eth0, down}, err: "tcp: GOCCL_SOCKET_IFNAME==eth matches no interface that is up and has an address; there are: lo (127.0.0.1 ::1), eth0 (fe80::1 2001:db8::1 10.0.0.1), eth2 (down 10.3.0.1)"},
		{name: "exclude", sel: "^eth0,docker", ifs: all, addr: "10.1.0.1", ifname: "eth1"},
		{name: "exclude all but loopback", sel: "^eth,ib,docker", ifs: all, addr: "127.0.0.1", ifname: "lo"},
		{name: "exclude exactly", sel: "^=eth0,eth", ifs: all, addr: "10.1.0.1", ifname: "eth1"},
		{name: "exclude everything", sel: "^lo,eth", ifs: []iface{lo, eth0}, err: "matches no interface"},
		{name: "it is down", sel: "eth2", ifs: all, err: "eth2 (down 10.3.0.1)"},
		{name: "it has no address", sel: "hsn", ifs: all, err: "hsn0 (no address)"},

		{name: "only a sign", sel: "^", ifs: all, err: "tcp: GOCCL_SOCKET_IFNAME=^: a name is missing; write eth,ib or =eth0 or ^docker,lo"},
		{name: "only blank", sel: " ", ifs: all, err: "a name is missing"},
		{name: "trailing comma", sel: "eth0,", ifs: all, err: "a name is missing"},
		{name: "sign inside", sel: "eth0,^lo", ifs: all, err: `"^lo": ^ and = are allowed only before the whole list`},
		{name: "signs in the wrong order", sel: "=^lo", ifs: all, err: `"^lo": ^ and = are allowed`},
		{name: "sign twice", sel: "^^lo", ifs: all, err: `"^lo": ^ and = are allowed`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ifname, err := pick(tc.sel, tc.toward, tc.ifs, tc.route)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.addr, got.String())
			require.Equal(t, tc.ifname, ifname)
		})
	}
}

// TestPick asks this host.
func TestPick(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	addr, ifname, err := Pick("", loopback)
	require.NoError(t, err)
	require.Equal(t, loopback, addr)

	again, name, err := Pick("="+ifname, loopback)
	require.NoError(t, err)
	require.Equal(t, addr, again)
	require.Equal(t, ifname, name)

	addr, _, err = Pick("", netip.Addr{})
	require.NoError(t, err)
	n, err := Listen("j", noSecret, auth.Plain, addr)
	require.NoError(t, err, "Pick's address can be listened on")
	require.NoError(t, n.Close())

	_, _, err = Pick("=no such interface", netip.Addr{})
	require.ErrorContains(t, err, ifname+" (")
}

func FuzzSelection(f *testing.F) {
	for _, s := range []string{"", "eth,ib", "=eth0", "^docker,lo", "^=lo", "^,", "=="} {
		f.Add(s, "eth0")
	}
	f.Fuzz(func(t *testing.T, sel, name string) {
		if takes, err := parseSelection(sel); err == nil {
			takes(name)
		}
	})
}
