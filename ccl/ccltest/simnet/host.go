package simnet

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/simhost"
)

// Host is a process on a host of its own: a simhost.Host. The network's lock guards it.
type Host struct {
	net       *Net
	number    int
	addr      netip.Addr
	listeners map[string]*listener // by port, or by the name of a socket that does not leave the host
	stopped   chan struct{}        // closed when it goes on; nil: it runs
	ended     bool                 // its process has been ended
	silent    bool                 // by its host: nothing is heard of it any more
	dials     map[string]uint64    // of each address
	port      uint16               // the last one taken
	started   atomic.Bool          // see Started
	env       []string
}

func newHost(n *Net, i int) *Host {
	return &Host{net: n, number: i, addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(1 + i)}),
		listeners: map[string]*listener{}, dials: map[string]uint64{}, port: 40000}
}

// Addr is its address.
func (h *Host) Addr() netip.Addr { return h.addr }

// ID tells its process apart.
func (h *Host) ID() (id [16]byte) {
	copy(id[:], fmt.Sprintf("simulated %6d", h.number))
	return id
}

// Launch gives its environment what a launcher sets, as name=value. It is called before its process begins.
func (h *Host) Launch(env ...string) { h.env = env }

// Environ is what Launch has set.
func (h *Host) Environ() []string { return h.env }

// Started is kept for package ccl.
func (h *Host) Started() *atomic.Bool { return &h.started }

// Context is ctx on this host: NewComm and what else dials or listens is given it.
func (h *Host) Context(ctx context.Context) context.Context { return simhost.With(ctx, h) }

// Live returns once its process may go on.
func (h *Host) Live() {
	for {
		h.net.mu.Lock()
		c := h.stopped
		h.net.mu.Unlock()
		if c == nil {
			return
		}
		<-c
	}
}

// Stop stops the process until Go.
func (h *Host) Stop() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.tell("stop %d", h.number)
	h.stop()
}

func (h *Host) stop() {
	if h.stopped == nil {
		h.stopped = make(chan struct{})
	}
}

// Go lets the process go on, unless it has ended.
func (h *Host) Go() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if !h.ended {
		h.net.tell("go %d", h.number)
		h.goOn()
	}
}

func (h *Host) goOn() {
	if h.stopped != nil {
		close(h.stopped)
		h.stopped = nil
	}
}

// Kill ends the process: the kernel closes what it had. With silent its host has lost power, and nothing is heard of
// it any more. Its goroutines stand still until Bury.
func (h *Host) Kill(silent bool) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("kill %d, silent %v", h.number, silent)
	h.ended, h.silent = true, silent
	h.stop()
	if silent {
		n.cutOff(h.number, true)
		return
	}
	for _, l := range h.listeners {
		l.shut()
	}
	h.listeners = map[string]*listener{}
	for _, c := range n.conns {
		for _, c := range []*conn{c, c.peer} {
			if c.host == h {
				c.end()
			}
		}
	}
}

// Forget has the firewall of this host forget the open connections, or know them again. Until then a packet on a
// forgotten connection resets the connection.
func (h *Host) Forget(forget bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.tell("forget %d %v", h.number, forget)
	for _, c := range h.net.conns {
		if c.host != c.peer.host && (c.host == h || c.peer.host == h) {
			c.in.forgotten, c.peer.in.forgotten = forget, forget
		}
	}
}

// Ended reports whether the process has been ended.
func (h *Host) Ended() bool {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.ended
}

// Bury lets the goroutines of a process that has been ended come to their end: all connections are reset. Nobody
// may be left that would hear of them.
func (h *Host) Bury() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.tell("bury %d", h.number)
	for _, c := range h.net.conns {
		if c.host == h || c.peer.host == h {
			c.reset()
			c.peer.reset()
		}
	}
	h.net.cutOff(h.number, false)
	h.goOn()
}

// listener is one of a host.
type listener struct {
	h    *Host
	at   net.Addr
	key  string // among the host's
	came chan *conn
	over chan struct{}
	once sync.Once
}

// backlog is how many connections wait to be accepted.
const backlog = 4096

// isLocal reports whether addr names a socket that does not leave its host.
func isLocal(addr string) bool { return strings.HasPrefix(addr, "@") }

// Listen listens at a port of this host, or at a name that begins with @: only this host reaches that one.
func (h *Host) Listen(addr string) (net.Listener, error) {
	h.Live()
	fail := func(err error) (net.Listener, error) { return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err} }
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{h: h, key: addr, at: &net.UnixAddr{Name: addr, Net: "unix"}, came: make(chan *conn, backlog),
		over: make(chan struct{})}
	if !isLocal(addr) {
		_, text, err := net.SplitHostPort(addr)
		if err != nil {
			return fail(err)
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return fail(err)
		}
		if port == 0 {
			h.port++
			port = uint64(h.port)
		}
		l.key, l.at = portKey(uint16(port)), net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.addr, uint16(port)))
	}
	if h.listeners[l.key] != nil {
		return fail(os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	h.listeners[l.key] = l
	return l, nil
}

func portKey(port uint16) string { return strconv.Itoa(int(port)) }

func (l *listener) Accept() (net.Conn, error) {
	l.h.Live()
	select {
	case c := <-l.came:
		l.h.Live()
		return c, nil
	case <-l.over:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: net.ErrClosed}
	}
}

// shut ends l. The network's lock is held.
func (l *listener) shut() {
	l.once.Do(func() { close(l.over) })
	for {
		select {
		case c := <-l.came:
			c.end()
		default:
			return
		}
	}
}

func (l *listener) Close() error {
	l.h.net.mu.Lock()
	defer l.h.net.mu.Unlock()
	if l.h.listeners[l.key] == l {
		delete(l.h.listeners, l.key)
	}
	l.shut()
	return nil
}

func (l *listener) Addr() net.Addr { return l.at }

// Dial connects to host:port, or to a name of Listen.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	h.Live()
	fail := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	to, err := netip.ParseAddrPort(addr)
	link, name := &h.net.link, ""
	if isLocal(addr) {
		to, err = netip.AddrPortFrom(h.addr, 0), nil
		link, name = &onHost, addr
	}
	if err != nil {
		return fail(err)
	}
	n := h.net
	n.mu.Lock()
	h.dials[addr]++
	rng := n.random(chances(h.number, addr, h.dials[addr]))
	n.mu.Unlock()
	syn := time.Second // the first packet, sent again
	for {
		select {
		case <-time.After(time.Until(n.gridded(link, time.Now().Add(link.trip(rng)+link.trip(rng))))):
		case <-ctx.Done():
			return fail(ctx.Err())
		}
		h.Live()
		n.mu.Lock()
		c, err := h.connect(to, name, rng.Uint64())
		n.mu.Unlock()
		if c != nil {
			return c, nil
		}
		if err != nil {
			return fail(os.NewSyscallError("connect", err))
		}
		select {
		case <-time.After(syn):
			syn *= 2
		case <-ctx.Done():
			return fail(ctx.Err())
		}
	}
}

// onHost is how a connection is that does not leave its host.
var onHost = Link{Delay: 5 * time.Microsecond, Window: 256 << 10}

// chances names those of the nth dial from a host to an address: what it dials elsewhere at the same time does not
// change them.
func chances(from int, addr string, nth uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, from, addr, nth)
	return h.Sum64()
}

// connect makes the connection, to a port or to the socket of that name. It returns nil and nil if nobody answers.
// The network's lock is held.
func (h *Host) connect(to netip.AddrPort, name string, chances uint64) (*conn, error) {
	n := h.net
	var p *Host
	for _, o := range n.hosts {
		if o.addr == to.Addr() {
			p = o
		}
	}
	switch {
	case p == nil, n.apart[way{h.number, p.number}]:
		return nil, syscall.EHOSTUNREACH
	case n.cut[way{h.number, p.number}] || n.cut[way{p.number, h.number}]:
		return nil, nil
	}
	key := name
	if name == "" {
		key = portKey(to.Port())
	}
	l := p.listeners[key]
	if l == nil || len(l.came) == backlog {
		n.tell("refused %d>%d", h.number, p.number)
		return nil, syscall.ECONNREFUSED
	}
	h.port++
	from := netip.AddrPortFrom(h.addr, h.port)
	a, b := newConn(h, from, to, n.random(chances)), newConn(p, to, from, n.random(chances+1))
	a.peer, b.peer = b, a
	if name != "" {
		a.name, b.name, a.link, b.link = name, name, &onHost, &onHost
	}
	n.conns = append(n.conns, a)
	n.sent("connect", a, 0)
	l.came <- b
	return a, nil
}
