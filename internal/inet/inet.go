// Package inet binds and dials the TCP sockets of goccl, by one function each, and knows this host's end of
// the network.
//
// [Listen] binds every listener, so the range of ports that GOCCL_PORTS names holds for all of them
// (test/imports says so). [Dial] makes every connection. Its error tells what keeps this host, or this
// process, from connecting, a [Trouble], from what the other end does.
package inet

import (
	"net"
	"net/netip"
	"slices"

	"github.com/goccl/goccl/internal/simhost"
)

// Ours are the addresses of this host's interfaces; of h, unless that is nil.
func Ours(h simhost.Host) []netip.Addr {
	if h != nil {
		return []netip.Addr{h.Addr()}
	}
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addrs []netip.Addr
	for _, n := range nets {
		if p, err := netip.ParsePrefix(n.String()); err == nil {
			addrs = append(addrs, p.Addr().Unmap())
		}
	}
	return addrs
}

// LeadsHere reports whether what is sent to a stays on this host; on h, unless that is nil.
func LeadsHere(h simhost.Host, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsUnspecified() || slices.Contains(Ours(h), a)
}

// Here reports whether addr, host:port, is on the loopback interface whatever the resolver says.
func Here(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// loopbackDown reports whether this host has a loopback interface, and it is not up. Then nothing reaches any
// of the host's own addresses: where the interface was up before, what is sent there vanishes.
func loopbackDown() bool {
	all, err := net.Interfaces()
	if err != nil {
		return false
	}
	down := false
	for _, it := range all {
		if it.Flags&net.FlagLoopback == 0 {
			continue
		}
		if it.Flags&net.FlagUp != 0 {
			return false
		}
		down = true
	}
	return down
}

// DownText says so.
const DownText = "this host does not reach itself: its loopback interface is down (ip link set lo up brings it up)"
