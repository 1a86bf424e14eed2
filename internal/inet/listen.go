package inet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/simhost"
)

// Any is all addresses of a host, of the family of a.
func Any(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// ErrRange is what Listen returns where GOCCL_PORTS names no range of ports.
var ErrRange = errors.New("no range of ports")

// Listen listens at addr, host:port, where no host stands for all addresses of this one. Port 0 takes a free
// port: one of GOCCL_PORTS where that is set.
func Listen(addr string) (*net.TCPListener, error) { return ListenAs(os.Getenv, addr) }

// ListenAt is Listen of the process of h, which may be nil.
func ListenAt(h simhost.Host, addr string) (net.Listener, error) {
	if h != nil {
		return h.Listen(addr)
	}
	return Listen(addr)
}

// ListenLocal listens at a Unix socket, of the process of h, which may be nil.
func ListenLocal(h simhost.Host, name string) (net.Listener, error) {
	if h != nil {
		return h.Listen(name)
	}
	return net.Listen("unix", name)
}

// ListenAs is Listen in another environment than this process has, such as that of ranks to come.
func ListenAs(getenv func(name string) string, addr string) (*net.TCPListener, error) {
	ports, err := environ.Ports.From(getenv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRange, err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" || ports == (environ.PortRange{}) {
		return listen(addr)
	}
	// Not from the first on: a port is not to be another process's as soon as its own has ended, for which
	// those still look there.
	n := ports.Size()
	for i, start := 0, rand.IntN(n); i < n; i++ {
		l, err := listen(net.JoinHostPort(host, strconv.Itoa(ports.From+(start+i)%n)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	at := "this host"
	if host != "" {
		at = host
	}
	return nil, fmt.Errorf("%s is used up: %w: all %d ports of it are taken at %s. A host needs one for each process, and rank 0's one more; a job that grows needs twice as many",
		environ.Ports.Set(ports.String()), syscall.EADDRINUSE, n, at)
}

// listen binds a port. Not by MPTCP, which Go's listeners speak by default: its sockets ignore TCP_CONGESTION
// and cost more per call.
func listen(addr string) (*net.TCPListener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		if a, perr := netip.ParseAddrPort(addr); perr == nil && a.Addr().IsLoopback() &&
			errors.Is(err, syscall.EADDRNOTAVAIL) && loopbackDown() {
			return nil, &Trouble{Text: DownText, Lasting: true, Err: err}
		}
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
