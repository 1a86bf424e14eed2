package boot

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

// acceptor has the doors of a hostServer or a Hall, and the connections that came through them,
// until it is shut.
type acceptor struct {
	done  chan struct{} // closed by shut
	doors doors
	wg    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // all there are, for shut
}

// newAcceptor makes one. For few see doors.
func newAcceptor(few int) acceptor {
	return acceptor{done: make(chan struct{}), doors: doors{few: few}, conns: map[net.Conn]struct{}{}}
}

// listen has greet called, on a goroutine of its own, for each connection that comes to l, until
// close or deafen. greet sees to it that the connection is forgotten.
func (d *acceptor) listen(l net.Listener, secret auth.Secret, greet func(net.Conn, *door, *auth.Stranger)) {
	o := d.doors.open(l, secret)
	if o == nil {
		return
	}
	d.wg.Go(func() {
		for {
			conn, err := o.Accept()
			switch {
			case err == nil && d.admit(conn):
				if s := o.strangers.Admit(conn); s != nil {
					d.wg.Go(func() { greet(conn, o, s) })
				} else {
					d.forget(conn)
				}
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // out of descriptors, say: make room and go on
				o.strangers.MakeRoom()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-d.done:
				}
			}
		}
	})
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

// forget closes a connection that has ended.
func (d *acceptor) forget(conn net.Conn) {
	conn.Close()
	d.mu.Lock()
	delete(d.conns, conn)
	d.mu.Unlock()
}

// shut closes the doors and all connections; no more are admitted.
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
	d.doors.deafen()
}

// close ends everything and waits until it has ended.
func (d *acceptor) close() {
	d.shut()
	d.wg.Wait()
}

// addrOf is the IP address of a, if it has one.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// isLocal reports whether conn does not leave this host.
func isLocal(conn net.Conn) bool {
	return conn.LocalAddr().Network() == "unix"
}
