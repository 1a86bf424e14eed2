package group

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/algo"
)

// A book gives back what it was made of, and has the address of a host once, wherever the host's ranks are among all.
func TestBook(t *testing.T) {
	const n, each = 24, 12
	addrOf := func(host, r int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(host)}), uint16(40_000+r))
	}
	for _, tc := range []struct {
		name     string
		host     func(r int) int
		addr     func(host, r int) netip.AddrPort
		v4, runs int
		inTurn   bool
	}{
		{"in blocks", func(r int) int { return r / each }, addrOf, 2, 2, true},
		{"in turns", func(r int) int { return r % (n / each) }, addrOf, 2, 2, true},
		{"one on each", func(r int) int { return r }, addrOf, n, n, true},
		{"in no order", func(r int) int { return r * r % 11 / 2 }, addrOf, 4, 4, true},
		{"two addresses on each", func(r int) int { return r / each }, func(h, r int) netip.AddrPort { return addrOf(2*h+r%2, r) }, 4, n, false},
		{"IPv6", func(r int) int { return r / each }, func(h, r int) netip.AddrPort {
			return netip.AddrPortFrom(netip.MustParseAddr([]string{"fe80::1%eth0", "fe80::2%eth0"}[h]), uint16(r))
		}, 0, 2, false},
		{"both", func(r int) int { return r / each }, func(h, r int) netip.AddrPort {
			if h == 0 {
				return netip.AddrPortFrom(netip.MustParseAddr("2001:db8::7"), uint16(r))
			}
			return addrOf(h, r)
		}, 1, 2, false},
		{"none said", func(r int) int { return r / each }, func(h, r int) netip.AddrPort { return netip.AddrPort{} }, 0, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var nodeOf []int
			for r := range n {
				nodeOf = append(nodeOf, tc.host(r))
			}
			topo := algo.Placed(nodeOf)
			var addrs []netip.AddrPort
			for r := range n {
				addrs = append(addrs, tc.addr(topo.Node(r), r))
			}
			b := BookOf(topo, addrs...)
			require.Equal(t, n, b.Len())
			for r, a := range addrs {
				require.Equal(t, a, b.At(r))
			}
			require.Len(t, b.v4, tc.v4)
			require.Len(t, b.from, tc.runs, "runs of ranks")
			require.Equal(t, tc.inTurn, b.host == nil)
		})
	}
	none := new(Book)
	require.Zero(t, none.Len())
}
