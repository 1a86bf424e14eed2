package boot

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// listenHere listens at the first of addrs, this host's own, that it has: there may be no IPv4.
func listenHere(addrs ...string) (net.Listener, error) {
	var first error
	for _, a := range addrs {
		l, err := net.Listen("tcp", a)
		if err == nil {
			return l, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// reachHere is the error for a listener of this host's own that this host does not reach, as in a sandbox
// whose loopback interface is down: nobody ever would, and all would look for it until the timeout.
func reachHere(l net.Listener) error {
	const limit = time.Second
	conn, err := net.DialTimeout("tcp", l.Addr().String(), limit)
	if err != nil {
		if cutOff(err) {
			return fault(System, "%s", downText)
		}
		return nil // a full queue, say: the ranks try for longer
	}
	conn.Close()
	if t, ok := l.(*net.TCPListener); ok {
		t.SetDeadline(time.Now().Add(limit))
		if c, err := l.Accept(); err == nil { // as a rule the one above; else a rank, which tries again
			c.Close()
		}
		t.SetDeadline(time.Time{})
	}
	return nil
}

const downText = "this host does not reach itself: its loopback interface is down (ip link set lo up brings it up)"

// cutOff reports whether err says that there is no way to an address, now or later.
func cutOff(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETDOWN)
}

// here reports whether addr, host:port, is on the loopback interface whatever the resolver says.
func here(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
