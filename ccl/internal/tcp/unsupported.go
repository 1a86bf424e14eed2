//go:build !unix || aix

package tcp

import (
	"net"
	"time"
)

// Streams where no poll tells of several: one goroutine pumps each.

// Conn is one end of a stream, for callers that poll: no call but Wait blocks; see Waits. One
// goroutine may send while another receives; Close and Abort are for any.
type Conn struct {
	*pump
	sealed *sealed // nil: data travel as they are
}

func newConn(conn net.Conn) (*Conn, error) { return &Conn{pump: newPump(conn.(duplex))}, nil }

// pass is for the errors of a Conn that passes a relay: here they are the connection's own.
func (c *Conn) pass(net.Addr) {}

// sendNow sends a and then b, which may be nil, as they are, and receiveNow receives into them.
func (c *Conn) sendNow(a, b []byte) (int, error)    { return c.pump.TrySendBoth(a, b) }
func (c *Conn) receiveNow(a, b []byte) (int, error) { return c.pump.TryRecvBoth(a, b) }

// RoundTrip is 0: not known.
func (c *Conn) RoundTrip() time.Duration { return 0 }

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Waits are streams that one goroutine waits for together.
type Waits struct {
	conn  *Conn // the last that was added
	count int
	write bool // one has been added for room to send
	ready bool // one need not be waited for
}

// Add adds c, for the next Wait: for what c receives, or with write for room to send.
func (w *Waits) Add(c *Conn, write bool) {
	w.conn, w.write, w.ready = c, w.write || write, w.ready || !write && c.sealed.holds()
	w.count++
}

// Wait blocks until one of the streams can move what it has been added for, or receives no more and
// has been added for that, but no longer than d, and removes them. It returns false, at once, if it
// cannot wait for these streams: here it can wait for what one alone receives.
func (w *Waits) Wait(d time.Duration) bool {
	defer func() { *w = Waits{} }()
	switch {
	case w.ready:
		return true
	case w.count != 1 || w.write:
		return false
	}
	w.conn.Wait(d, false)
	return true
}
