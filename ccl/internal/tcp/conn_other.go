//go:build !unix || aix

package tcp

import (
	"net"
	"time"
)

// Conn is one end of a stream, for callers that poll: no call but Wait blocks; see Waits. One
// goroutine may send while another receives; Close and Abort are for any.
type Conn struct {
	*pump
	sealed *sealed // nil: data travel as they are
}

func newConn(conn net.Conn) (*Conn, error) { return &Conn{pump: newPump(conn.(duplex))}, nil }

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
