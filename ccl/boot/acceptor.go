package boot

import (
	"net"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/internal/auth"
)

// acceptor has the listener of a hostServer, and the connections that it accepted, until it is shut.
type acceptor struct {
	done      chan struct{}   // closed by shut
	strangers *auth.Strangers // nil until open

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{} // all there are, for shut
	seen     netip.Addr            // the address of this host that another one reached first
}

func newAcceptor() acceptor {
	return acceptor{done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
}

// open notes the listener, which shut and deafen close.
func (d *acceptor) open(l net.Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener, d.strangers = l, auth.NewStrangers(l.Addr())
}

// admit notes a new connection, so that shut finds it.
func (d *acceptor) admit(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.done:
		conn.Close()
		return false
	default:
	}
	d.conns[conn] = struct{}{}
	return true
}

// reached notes at which address of this host one of the job's has reached it.
func (d *acceptor) reached(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := addrOf(conn.LocalAddr()); a.IsValid() && !a.IsLoopback() && !d.seen.IsValid() {
		d.seen = a
	}
}

// refused is how many connections did not know the job's secret.
func (d *acceptor) refused() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strangers == nil {
		return 0
	}
	return d.strangers.Refused()
}

// forget closes a connection that has ended.
func (d *acceptor) forget(conn net.Conn) {
	conn.Close()
	d.mu.Lock()
	delete(d.conns, conn)
	d.mu.Unlock()
}

// deafen stops listening, and ends what is still in the handshake.
func (d *acceptor) deafen() {
	d.mu.Lock()
	l, s := d.listener, d.strangers
	d.mu.Unlock()
	if l != nil {
		l.Close()
		s.Close()
	}
}

// shut closes the listener and all connections; no more are admitted.
func (d *acceptor) shut() {
	d.mu.Lock()
	select {
	case <-d.done:
	default:
		close(d.done)
	}
	for conn := range d.conns {
		conn.Close()
	}
	d.mu.Unlock()
	d.deafen()
}

// addrOf is the IP address of a, if it has one.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
