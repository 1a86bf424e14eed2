package boot

import (
	"net"
	"net/netip"
	"sync"
)

// acceptor has the doors of a hostServer, and the connections that came through them, until it is
// shut.
type acceptor struct {
	done  chan struct{} // closed by shut
	doors doors
	tree  tree

	mu    sync.Mutex
	conns map[net.Conn]struct{} // all there are, for shut
	seen  netip.Addr            // the address of this host that another one reached first
}

func newAcceptor(size int) acceptor {
	most, few := branchesOf(size), 0
	if most > 0 {
		few = prompt
	}
	return acceptor{done: make(chan struct{}), doors: doors{few: few}, tree: tree{most: most}, conns: map[net.Conn]struct{}{}}
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

// forget closes a connection that has ended.
func (d *acceptor) forget(conn net.Conn) {
	conn.Close()
	d.mu.Lock()
	delete(d.conns, conn)
	d.mu.Unlock()
	d.tree.leave(conn)
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

// addrOf is the IP address of a, if it has one.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// isLocal reports whether conn does not leave this host.
func isLocal(conn net.Conn) bool {
	_, unix := conn.(*net.UnixConn)
	return unix
}
