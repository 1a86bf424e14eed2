package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// A book gives back what it was made of, and has the address of a host once.
func TestBook(t *testing.T) {
	var addrs []netip.AddrPort
	for r := range 24 {
		ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(r / 12)})
		if r == 23 {
			ip = netip.MustParseAddr("fe80::1%eth0")
		}
		addrs = append(addrs, netip.AddrPortFrom(ip, uint16(40_000+r)))
	}
	addrs = append(addrs, netip.AddrPort{})
	b := BookOf(addrs...)
	require.Equal(t, len(addrs), b.Len())
	for r, a := range addrs {
		require.Equal(t, a, b.At(r))
	}
	require.Len(t, b.v4, 2)
	require.Len(t, b.other, 2)
	require.Len(t, b.from, 4, "runs of ranks")
	var turns []netip.AddrPort // ranks that are placed in turns
	for r := range 24 {
		turns = append(turns, addrs[r%2*12])
	}
	b = BookOf(turns...)
	require.Len(t, b.v4, 2)
	for r, a := range turns {
		require.Equal(t, a, b.At(r))
	}
	none := BookOf()
	require.Zero(t, none.Len())
}
