package boot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// TCPOptions tune [TCP].
type TCPOptions struct {
	// Job tells apart jobs that might meet at one port. It is the same on all ranks.
	Job string
	// Secret is known to all ranks and to nobody else, and has at least 16 bytes. Hex digits
	// stand for their bytes, as they do in GOCCL_SECRET. nil takes what
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
// listens there: on the interface that has the address, or on all where the host is a name, or an
// address that is translated on the way. If the host is empty or unspecified (":29500"), it listens
// on all interfaces, and the other ranks look for it on their own host. They try until ctx ends, or
// for DefaultLimit if it has no deadline. All ranks get one verdict.
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
		at, err := waitForName(ctx, host, interfaceOf)
		if err != nil {
			return nil, auth.Secret{}, err
		}
		if m.absent.note = at.note; at.note != "" && at.on == "" {
			slog.Warn("goccl: " + at.note)
		}
		l, err := inet.ListenAt(simhost.Of(ctx), net.JoinHostPort(at.on, port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, auth.Secret{}, portTaken(ctx, port, to)
		} else if err != nil {
			return nil, auth.Secret{}, cannotListen(err, "rank 0 cannot listen at %s", root)
		}
		if inet.Here(addrs[0]) {
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
		on, err := interfaceOf(ctx, hosts[0])
		if err != nil || len(hosts) > 1 { // the launcher's name for a host need not lead to it
			on = ground{}
		}
		var at []string
		for _, p := range ports {
			at = append(at, net.JoinHostPort(on.on, strconv.Itoa(p)))
		}
		l, err := listenFirst(simhost.Of(ctx), inet.ListenAt, at)
		return l, m.secret, err
	}
}

// derivePorts returns the ports at which a job may meet, the same on all its ranks: of GOCCL_PORTS where that is set.
func derivePorts(job string, avoid int) []int {
	among := environ.Ports.Get().Meeting() // what is wrong with it rank 0 says, which listens
	sum := sha256.Sum256([]byte("goccl port " + job))
	start := int(binary.BigEndian.Uint32(sum[:]) % uint32(among.Size()))
	var ports []int
	for i := 0; len(ports) < tries && i < among.Size(); i++ {
		if p := among.From + (start+i)%among.Size(); p != avoid || among.Size() == 1 {
			// where there is no other, rank 0 says that it is taken
			ports = append(ports, p)
		}
	}
	return ports
}

// ground is where rank 0 is to listen so that others reach this host by the name that they have for it.
type ground struct {
	on   string // an address, or "" for all
	note string // what may keep others from coming, "" if nothing does
}

// interfaceOf returns the ground for host. A name does not choose an interface: this host may have another
// address for it than the others have, such as Debian's loopback address, or that of its back end. An address
// does, unless this host does not have it: one that is translated on the way leads here by any of them.
func interfaceOf(ctx context.Context, host string) (ground, error) {
	h := simhost.Of(ctx)
	if host == "" || host == "localhost" {
		return ground{on: map[string]string{"": "", "localhost": "127.0.0.1"}[host]}, nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		switch {
		case !inet.LeadsHere(h, a):
			return ground{note: notOurs(host)}, nil
		case a.IsLoopback() || a.IsUnspecified():
			return ground{on: host}, nil
		}
		return ground{on: host, note: "Rank 0 listens at " + host +
			" alone; a root without a host, :PORT, has it listen at all of its addresses"}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return ground{}, fault(Argument, "the root's host %s has no address: %v", host, err)
	}
	if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return inet.LeadsHere(h, a) }) {
		return ground{note: notOurs(host + " (" + addrs[0].Unmap().String() + ")")}, nil
	}
	return ground{}, nil
}

func notOurs(host string) string {
	return fmt.Sprintf("The root's host %s is not this host, %s: rank 0 listens at all addresses here, and is found only if that one leads to one of them; else run rank 0 there",
		host, selfJoin(0, 1).Host)
}

// waitForName is lookup once host has an address: rank 0 waits for its own name as the others do, since a cluster
// may give a pod its name only after it has started.
func waitForName(ctx context.Context, host string,
	lookup func(context.Context, string) (ground, error)) (ground, error) {
	naming, end := lived.Within(ctx, nameLimit)
	defer end()
	told := false
	for wait := firstBackoff; ; wait = min(wait*3/2, maxBackoff) {
		at, err := lookup(ctx, host)
		var unknown *net.DNSError
		if err == nil || !errors.As(err, &unknown) {
			return at, err
		}
		if !told && naming.Err() != nil && ctx.Err() == nil {
			told = true
			slog.Warn("goccl: rank 0 waits for its own name, as the others do: " + unknown.Error())
		}
		if !pause(ctx, wait) {
			if errors.Is(ctx.Err(), context.Canceled) {
				return at, ended(ctx.Err(), "canceled while rank 0 waited for the address of its own name, "+host)
			}
			e := fault(Timeout, "rank 0's own name %s did not resolve before the timeout: %v. Is it right, and does this host's resolver know it? An address needs no resolver", host, unknown.Err)
			e.Err = unknown
			return at, e.by(0)
		}
	}
}

// portTaken is the error of rank 0 whose port another socket has: a listener, or else a connection, to
// which the kernel gave the port by chance.
func portTaken(ctx context.Context, port, to string) *Error {
	for _, a := range inet.Ours(simhost.Of(ctx)) {
		conn, err := inet.Dial(ctx, "tcp", net.JoinHostPort(a.String(), port), leastDial)
		if err == nil {
			conn.Close()
		}
		if err == nil || inet.IsTimeout(err) {
			return fault(System, "port %s of %s is in use by another job, or by the remains of an earlier one; choose another root", port, to)
		}
	}
	return fault(System, "port %s of %s is that of a connection, to which this host has given it by chance; choose a root whose port it gives to none (Linux: outside net.ipv4.ip_local_port_range)", port, to)
}
