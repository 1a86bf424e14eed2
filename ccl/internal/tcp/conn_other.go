//go:build !unix || aix

package tcp

import "net"

// Conn is one end of a stream, for callers that poll: no call but Wait blocks; see Waits. One
// goroutine may send while another receives; Close and Abort are for any.
type Conn struct{ *pump }

func newConn(tc *net.TCPConn) (*Conn, error) { return &Conn{newPump(tc)}, nil }
