package simnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/simhost"
)

// Host is a process on a host of its own: a simhost.Host. The network's lock guards it.
type Host struct {
	net       *Net
	number    int
	addr      netip.Addr
	listeners map[uint16]*listener
	stopped   chan struct{} // closed when it goes on; nil: it runs
	ended     bool          // its process has been ended
	silent    bool          // by its host: nothing is heard of it any more
	dials     uint64
}

func newHost(n *Net, i int) *Host {
	return &Host{net: n, number: i, addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(1 + i)}),
		listeners: map[uint16]*listener{}}
}

// Addr is its address.
func (h *Host) Addr() netip.Addr { return h.addr }

// ID tells its process apart.
func (h *Host) ID() (id [16]byte) {
	copy(id[:], fmt.Sprintf("simulated %6d", h.number))
	return id
}

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
	h.listeners = map[uint16]*listener{}
	for _, c := range n.conns {
		for _, c := range []*conn{c, c.peer} {
			if c.host == h {
				c.end()
			}
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
	at   netip.AddrPort
	came chan *conn
	over chan struct{}
	once sync.Once
}

// backlog is how many connections wait to be accepted.
const backlog = 4096

// Listen listens at a port of this host.
func (h *Host) Listen(addr string) (net.Listener, error) {
	h.Live()
	fail := func(err error) (net.Listener, error) { return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err} }
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fail(err)
	}
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	port := at.Port()
	if port == 0 {
		n.port++
		port = n.port
	}
	if h.listeners[port] != nil {
		return fail(os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	l := &listener{h: h, at: netip.AddrPortFrom(h.addr, port), came: make(chan *conn, backlog), over: make(chan struct{})}
	h.listeners[port] = l
	return l, nil
}

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
	if l.h.listeners[l.at.Port()] == l {
		delete(l.h.listeners, l.at.Port())
	}
	l.shut()
	return nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// Dial connects to host:port.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	h.Live()
	fail := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fail(err)
	}
	n := h.net
	n.mu.Lock()
	h.dials++
	rng := n.random(uint64(h.number)<<32 | h.dials)
	n.mu.Unlock()
	syn := time.Second // the first packet, sent again
	for {
		select {
		case <-time.After(n.link.trip(rng) + n.link.trip(rng)):
		case <-ctx.Done():
			return fail(ctx.Err())
		}
		h.Live()
		n.mu.Lock()
		c, err := h.connect(to, rng.Uint64())
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

// connect makes the connection. It returns nil and nil if nobody answers. The network's lock is held.
func (h *Host) connect(to netip.AddrPort, name uint64) (*conn, error) {
	n := h.net
	var p *Host
	for _, o := range n.hosts {
		if o.addr == to.Addr() {
			p = o
		}
	}
	switch {
	case p == nil:
		return nil, syscall.EHOSTUNREACH
	case n.cut[way{h.number, p.number}] || n.cut[way{p.number, h.number}]:
		return nil, nil
	}
	l := p.listeners[to.Port()]
	if l == nil || len(l.came) == backlog {
		n.tell("refused %d>%d", h.number, p.number)
		return nil, syscall.ECONNREFUSED
	}
	n.port++
	from := netip.AddrPortFrom(h.addr, n.port)
	a, b := newConn(h, from, to, n.random(name)), newConn(p, to, from, n.random(name+1))
	a.peer, b.peer = b, a
	n.conns = append(n.conns, a)
	n.sent("connect", a, 0)
	l.came <- b
	return a, nil
}
