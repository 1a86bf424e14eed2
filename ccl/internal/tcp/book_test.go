package tcp

import (
	"net/netip"
	"testing"
	"unsafe"

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
	require.Len(t, b.hosts, 4)
	require.Equal(t, uintptr(6), unsafe.Sizeof(b.host[0])+unsafe.Sizeof(b.port[0]))
	none := BookOf()
	require.Zero(t, none.Len())
}
