package tcp

import (
	"fmt"
	"io"
	"net"
)

// RelayEnded is the io.EOF of a Conn that passes a relay. The other end may have ended, or the relay.
type RelayEnded struct{ Peer net.Addr }

func (e *RelayEnded) Error() string { return fmt.Sprintf("the connection with %v has ended", e.Peer) }

// Is says that e is an io.EOF.
func (e *RelayEnded) Is(target error) bool { return target == io.EOF }

// A Conn is of its platform: see conn_unix.go, and unsupported.go. Each call below is that of the
// platform, or of sealed.

// TrySend sends what the kernel takes of b now and returns how many bytes that was: 0 and no error
// if it would have to wait. Then what is tried next begins with the same bytes.
func (c *Conn) TrySend(b []byte) (n int, err error) {
	if c.sealed == nil {
		return c.sendNow(b, nil)
	}
	return c.sealed.send(c, b, nil)
}

// Copied is how many bytes of what TrySend and TrySendBoth were given, and have not counted yet, it
// has copied: their memory may be written already.
func (c *Conn) Copied() int {
	if c.sealed == nil {
		return 0
	}
	return c.sealed.carries
}

// TryRecv receives what is there, up to len(b) bytes: 0 and no error if nothing is.
// After the last byte of a peer that has closed it returns io.EOF.
func (c *Conn) TryRecv(b []byte) (n int, err error) {
	if c.sealed == nil {
		return c.receiveNow(b, nil)
	}
	return c.sealed.receive(c, b, nil)
}

// TrySendBoth is TrySend of a and then b, neither empty, in one call of the kernel, so that a
// message and its header need not leave in packets of their own.
func (c *Conn) TrySendBoth(a, b []byte) (n int, err error) {
	if c.sealed == nil {
		return c.sendNow(a, b)
	}
	return c.sealed.send(c, a, b)
}

// TryRecvBoth is TryRecv into a and then b, neither empty, in one call of the kernel.
func (c *Conn) TryRecvBoth(a, b []byte) (n int, err error) {
	if c.sealed == nil {
		return c.receiveNow(a, b)
	}
	return c.sealed.receive(c, a, b)
}
