package boot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

// TCPOptions tune [TCP].
type TCPOptions struct {
	// Job tells apart jobs that might meet at one port. It is the same on all ranks.
	Job string
	// Secret is known to all ranks and to nobody else, and has at least 16 bytes. nil takes what
	// GOCCL_SECRET_FILE or GOCCL_SECRET says; where that is nothing, anybody may join, unless
	// GOCCL_REQUIRE_SECRET refuses that. It is the same on all ranks.
	Secret []byte
	// HostID decides which ranks share a host: those with the same value. With "", those that find
	// each other there.
	HostID string
	// Reach is how long a rank tries to connect where nothing listens at Root, or its packets are
	// dropped. 0 means as long as it may take in all.
	Reach time.Duration
	// Listener is where rank 0 listens, if it does so already. It is closed with the bootstrap. Root
	// is its address.
	Listener net.Listener
}

// TCP returns the bootstrap of size ranks that know where rank 0 is: root is its host:port. Rank 0
// listens there, on the interface of that host. If the host is empty or unspecified (":29500"), it
// listens on all interfaces, and the other ranks look for it on their own host. They try until ctx
// ends, or for DefaultLimit if it has no deadline. All ranks get one verdict.
//
// On Linux the ranks of a host meet at a socket of their own, so that rank 0 holds one connection
// per host.
func TCP(ctx context.Context, root string, rank, size int, o *TCPOptions) (*Boot, error) {
	if err := noContext(ctx); err != nil {
		return nil, err
	}
	if o == nil {
		o = &TCPOptions{}
	}
	m := &joinConfig{job: o.Job, rank: rank, size: size, hostID: o.HostID, reach: o.Reach}
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.settle(o.Secret), m.at(root)); err != nil {
		return nil, asError(err).of(rank, size)
	}
	if l := o.Listener; l != nil && rank == 0 {
		m.listen = func(context.Context) (net.Listener, auth.Secret, error) { return l, m.secret, nil }
	}
	return m.join(ctx)
}

// check looks at what the caller chose.
func (m *joinConfig) check() error {
	if m.size < 1 || m.rank < 0 || m.rank >= m.size {
		return fault(Argument, "rank %d of %d: a rank is at least 0 and less than the size", m.rank, m.size)
	}
	return nil
}

// at makes root, host:port, the place to meet.
func (m *joinConfig) at(root string) error {
	host, port, err := net.SplitHostPort(root)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 1 || n > 65535 {
		return fault(Argument, "root %q: rank 0's address is host:port, with a port from 1 to 65535, such as c1:29500", root)
	}
	to := host
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		to = "localhost"
	}
	addrs := []string{net.JoinHostPort(to, port)}
	m.fixed = true
	m.host = hostSocket(m.job, root, m.hostID)
	m.find = func() (point, error) { return point{network: "tcp", addrs: addrs, secret: m.secret}, nil }
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		on, err := waitForName(ctx, host, interfaceOf)
		if err != nil {
			return nil, auth.Secret{}, err
		}
		l, err := net.Listen("tcp", net.JoinHostPort(on, port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, auth.Secret{}, fault(System, "port %s of %s is in use by another job, or by the remains of an earlier one; choose another root", port, to)
		} else if err != nil {
			return nil, auth.Secret{}, fault(System, "rank 0 cannot listen at %s: %v", root, err)
		}
		if here(addrs[0]) {
			if err := reachHere(l); err != nil {
				l.Close()
				return nil, auth.Secret{}, err
			}
		}
		return l, m.secret, nil
	}
	return nil
}

// derived makes a port derived from the job, on the first of hosts, the place to
// meet. The other hosts are further names of the same one.
func (m *joinConfig) derived(hosts []string, avoid int) {
	ports := derivePorts(m.job, avoid)
	var addrs []string
	for _, p := range ports {
		for _, h := range hosts {
			addrs = append(addrs, net.JoinHostPort(h, strconv.Itoa(p)))
		}
	}
	m.host = hostSocket(m.job, strings.Join(addrs, " "), m.hostID)
	m.find = func() (point, error) { return point{network: "tcp", addrs: addrs, secret: m.secret}, nil }
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		// The launcher's name for a host need not lead to its interface: then all of them.
		on, err := interfaceOf(ctx, hosts[0])
		if err != nil || len(hosts) > 1 {
			on = ""
		}
		var at []string
		for _, p := range ports {
			at = append(at, net.JoinHostPort(on, strconv.Itoa(p)))
		}
		l, err := listenFirst("tcp", at)
		return l, m.secret, err
	}
}

const (
	firstPort = 32768 // where Linux begins to take ports for connections, rarely so low
	portRange = 4096
)

// derivePorts returns the ports at which a job may meet, the same on all its ranks.
func derivePorts(job string, avoid int) []int {
	sum := sha256.Sum256([]byte("goccl port " + job))
	var ports []int
	for i := 0; len(ports) < tries && i+1 < len(sum); i += 2 {
		p := firstPort + int(binary.BigEndian.Uint16(sum[i:]))%portRange
		if p != avoid && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// interfaceOf returns the address to listen on so that others reach this host by
// the name host: "" for all. Debian's hosts lead their own name to a loopback
// address, which says nothing about where others look for it.
func interfaceOf(ctx context.Context, host string) (string, error) {
	if host == "" || host == "localhost" {
		return map[string]string{"": "", "localhost": "127.0.0.1"}[host], nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.IsLoopback() || a.IsUnspecified() || isOurs(a) {
			return host, nil
		}
		return "", notOurs(host, "")
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fault(Argument, "the root's host %s has no address: %v", host, err)
	}
	for _, a := range addrs {
		switch a = a.Unmap(); {
		case a.IsLoopback():
			return "", nil
		case isOurs(a):
			return a.String(), nil
		}
	}
	return "", notOurs(host, " ("+addrs[0].Unmap().String()+")")
}

// waitForName is lookup once host has an address: rank 0 waits for its own name as the others do, since a cluster
// may give a pod its name only after it has started.
func waitForName(ctx context.Context, host string, lookup func(context.Context, string) (string, error)) (string, error) {
	for wait := firstBackoff; ; wait = min(wait*3/2, maxBackoff) {
		on, err := lookup(ctx, host)
		var unknown *net.DNSError
		if err == nil || !errors.As(err, &unknown) {
			return on, err
		}
		if !pause(ctx, wait) {
			if errors.Is(ctx.Err(), context.Canceled) {
				return "", ended(ctx.Err(), "canceled while rank 0 waited for the address of its own name, "+host)
			}
			e := fault(Timeout, "rank 0's own name %s did not resolve before the timeout: %v. Is it right, and does this host's resolver know it? An address needs no resolver", host, unknown.Err)
			e.Err = unknown
			return "", e.by(0)
		}
	}
}

func notOurs(host, addr string) *Error {
	return fault(Argument, "the root's host %s%s is not this host, %s; run rank 0 there, or let the root name rank 0's host",
		host, addr, selfJoin(0, 1).Host)
}

// isOurs reports whether a is an address of this host.
func isOurs(a netip.Addr) bool { return slices.Contains(ourAddrs(), a.WithZone("")) }

// ourAddrs are the addresses of this host's interfaces.
func ourAddrs() []netip.Addr {
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
