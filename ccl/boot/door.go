package boot

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/internal/auth"
)

// maxPending is how many connections may be in the handshake; one more ends the oldest, which among strangers that say
// nothing is a stranger.
const maxPending = 4096

// door is where connections come to a crowd: the listener, and all that came by it, until it is shut.
type door struct {
	done chan struct{} // closed by shut

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{} // all there are, for shut
	pending  []net.Conn            // in the handshake, oldest first
	rejected int                   // connections that did not know the secret
	seen     netip.Addr            // the address of this host that another one reached first
}

func newDoor() door { return door{done: make(chan struct{}), conns: map[net.Conn]struct{}{}} }

// open notes the listener, which shut and deafen close.
func (d *door) open(l net.Listener) {
	d.mu.Lock()
	d.listener = l
	d.mu.Unlock()
}

// admit notes a new connection, so that shut finds it.
func (d *door) admit(conn net.Conn) bool {
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

// await notes that conn is in the handshake, until settle.
func (d *door) await(conn net.Conn) {
	d.mu.Lock()
	d.pending = append(d.pending, conn)
	full := len(d.pending) > maxPending
	d.mu.Unlock()
	if full {
		d.dropOldest()
	}
}

// judge notes what there is to learn of a handshake with conn that ended with err.
func (d *door) judge(conn net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(err, auth.ErrUnauthorized) {
		d.rejected++
	}
	if a := addrOf(conn.LocalAddr()); err == nil && a.IsValid() && !a.IsLoopback() && !d.seen.IsValid() {
		d.seen = a
	}
}

// settle takes conn off the list of those in the handshake.
func (d *door) settle(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range d.pending {
		if p == conn {
			d.pending = append(d.pending[:i], d.pending[i+1:]...)
			return
		}
	}
}

// dropOldest ends the connection that has been in the handshake longest.
func (d *door) dropOldest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) > 0 {
		d.pending[0].Close()
		d.pending = d.pending[1:]
	}
}

// forget closes a connection that has ended.
func (d *door) forget(conn net.Conn) {
	conn.Close()
	d.mu.Lock()
	delete(d.conns, conn)
	d.mu.Unlock()
}

// deafen stops listening, and ends what is still in the handshake.
func (d *door) deafen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener != nil {
		d.listener.Close()
	}
	for _, conn := range d.pending {
		conn.Close()
	}
	d.pending = nil
}

// shut closes the listener and all connections; no more are admitted.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.done:
	default:
		close(d.done)
	}
	if d.listener != nil {
		d.listener.Close()
	}
	for conn := range d.conns {
		conn.Close()
	}
}

// addrOf is the IP address of a, if it has one.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
