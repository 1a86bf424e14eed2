package ccl

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lobby"
	"github.com/goccl/goccl/internal/relay"
	"github.com/goccl/goccl/internal/simhost"
)

// Where the ranks of a job that grows meet: at an address of rank 0's host that guests reach, too.
// The name of the host does not say which: Debian's hosts lead their own name to a loopback
// address. So guests say which addresses their hosts have, and rank 0 asks the kernel from which of
// its own it reaches these.

// ways is what a process knows of the networks of its host.
type ways struct {
	identity string                                           // of the host, "" where it has none
	ours     []netip.Addr                                     // its addresses
	toward   func(to netip.Addr) (from netip.Addr, err error) // the address from which it reaches another
}

// ourWays are those of this process; of the process of h, unless that is nil.
func ourWays(h simhost.Host) ways {
	if h != nil {
		id := h.ID()
		return ways{string(id[:]), []netip.Addr{h.Addr()}, func(netip.Addr) (netip.Addr, error) { return h.Addr(), nil }}
	}
	sel, ours := environ.SocketIfname.Get(), []netip.Addr(nil)
	if told := environ.Advertise.Get(); told.IsValid() {
		ours = append(ours, told)
	}
	return ways{shm.HostIdentity(), append(ours, tcp.Reachable(sel)...),
		func(to netip.Addr) (netip.Addr, error) { return tcp.Toward(sel, to) }}
}

// meetAt is the address at which rank 0 listens. of is the one that the other hosts of its job
// know, which is invalid where there are none. unmet says of each guest why it cannot come, "" if
// it can; nil if all can.
func (n *ways) meetAt(of netip.Addr, guests []lobby.Guest) (at netip.Addr, unmet []string) {
	if at = of; !at.IsValid() {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	for k, g := range guests {
		if n.identity != "" && bytes.Equal(g.At, []byte(n.identity)) {
			continue
		}
		switch from, err := n.to(g); {
		case err != nil && g.Spare > 0: // the job reaches it already
		case err != nil:
			if unmet == nil {
				unmet = make([]string, len(guests))
			}
			unmet[k] = err.Error()
		case from.IsValid() && at.IsLoopback():
			at = from
		}
	}
	return at, unmet
}

// to is the address from which this host reaches that of g. It is invalid where the two have the
// same addresses, as two containers have that share a network.
func (n *ways) to(g lobby.Guest) (netip.Addr, error) {
	var none error
	for _, a := range g.Addrs {
		if slices.Contains(n.ours, a) {
			continue
		}
		from, err := n.toward(a)
		if err == nil {
			return from, nil
		}
		none = cmp.Or(none, err)
	}
	if none != nil {
		return netip.Addr{}, fmt.Errorf("rank 0's host (%s) has no way to its host (%s): %w", addrsText(n.ours),
			addrsText(g.Addrs), none)
	}
	return netip.Addr{}, nil
}

func addrsText(all []netip.Addr) string {
	if len(all) == 0 {
		return "no address but loopback"
	}
	return joined(all, ", ", netip.Addr.String)
}

// listenAt listens at a port of address at, or at all addresses if others reach this host by another one, and returns
// where others find it, directly or through a relay.
func listenAt(h simhost.Host, at netip.Addr) (net.Listener, string, error) {
	l, found, err := listenHere(h, at)
	if err != nil {
		return nil, "", err
	}
	name, err := netip.ParseAddrPort(found)
	if err == nil {
		l, err = relay.NewListener(h, l, name)
	}
	if err != nil {
		l.Close()
		return nil, "", err
	}
	return l, found, nil
}

// listenHere is listenAt without a relay.
func listenHere(h simhost.Host, at netip.Addr) (l net.Listener, found string, err error) {
	if told := environ.Advertise.Get(); told.IsValid() && h == nil && !at.IsLoopback() {
		if l, err = inet.ListenAt(nil, netip.AddrPortFrom(inet.Any(told), 0).String()); err == nil {
			at := l.Addr().(*net.TCPAddr).AddrPort()
			return l, netip.AddrPortFrom(told, at.Port()).String(), nil
		}
		return nil, "", fmt.Errorf("rank 0 cannot listen for those that are to join: %w", err)
	}
	l, err = inet.ListenAt(h, netip.AddrPortFrom(at, 0).String())
	if err != nil && at.IsLoopback() && at.Is4() { // a host with IPv6 alone
		l, err = inet.ListenAt(h, "[::1]:0")
	}
	if err != nil {
		return nil, "", fmt.Errorf("rank 0 cannot listen for those that are to join: %w", err)
	}
	return l, l.Addr().String(), nil
}
