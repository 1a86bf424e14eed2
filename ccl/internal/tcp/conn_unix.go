//go:build unix && !aix

package tcp

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/simhost"
)

// Conn is one end of a stream, for callers that poll: no call blocks; see Waits. One
// goroutine may send while another receives; Close and Abort are for any.
//
// The socket is Go's poller's no more: that would wake a thread at each arrival,
// 7 to 20 us, even where nobody waits in it.
type Conn struct {
	fd   int
	peer net.Addr
	// users counts the calls that use fd, twice; the lowest bit says that the Conn is
	// closed. The last user of a closed one closes fd: its number cannot become
	// another file's under a call.
	users  atomic.Int32
	ahead  ahead
	sealed *sealed        // nil: data travel as they are
	polled simhost.Polled // in the place of fd; nil: a socket
	relay  *RelayEnded    // nil: no relay is between
}

// newConn takes conn over, a *net.TCPConn or a simhost.Polled.
func newConn(conn net.Conn) (*Conn, error) {
	if p, ok := conn.(simhost.Polled); ok {
		return &Conn{fd: -1, peer: p.RemoteAddr(), polled: p}, nil
	}
	tc := conn.(*net.TCPConn)
	defer tc.Close()
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil, err
	}
	// Not tc.File: what that returns registers with the poller again.
	var fd int
	if cerr := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, fmt.Errorf("duplicating the socket: %w", err)
	}
	c := &Conn{fd: fd, peer: tc.RemoteAddr()}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if sameHost(tc) {
		tuneLocal(fd)
	}
	return c, nil
}

// pass notes that c passes a relay, which peer names.
func (c *Conn) pass(peer net.Addr) { c.peer, c.relay = peer, &RelayEnded{peer} }

// sameHost says whether the two ends have one address, as on a host they do.
func sameHost(tc *net.TCPConn) bool {
	local, remote := tc.LocalAddr().(*net.TCPAddr), tc.RemoteAddr().(*net.TCPAddr)
	return remote.IP.IsLoopback() || remote.IP.Equal(local.IP)
}

const closedBit = 1

// use begins a call. It is false if the Conn is closed.
func (c *Conn) use() bool {
	if c.users.Add(2)&closedBit != 0 {
		c.done()
		return false
	}
	return true
}

// done ends a call.
func (c *Conn) done() {
	if c.users.Add(-2) == closedBit && c.users.CompareAndSwap(closedBit, gone) {
		syscall.Close(c.fd)
	}
}

// gone is the users of a Conn whose fd is closed: far below what calls that come
// still, and go at once, can make positive.
const gone = -1<<30 | closedBit

// quantum bounds one call of the kernel: it is made without telling Go's scheduler,
// which is not to wait long.
const quantum = 512 << 10

// sendNow sends a and then b, which may be nil, as they are: see TrySend and TrySendBoth.
func (c *Conn) sendNow(a, b []byte) (n int, err error) {
	switch {
	case len(a) == 0:
		return 0, nil
	case c.polled != nil:
		return eachOfBoth(a, b, c.polled.TryWrite)
	}
	if !c.use() {
		return 0, net.ErrClosed
	}
	if inject.Cut("tcp.send") {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
	var errno syscall.Errno
	if b == nil {
		n, errno = send(c.fd, inject.Bytes("tcp.bytes", a[:min(len(a), quantum)]))
	} else {
		n, errno = sendBoth(c.fd, inject.Bytes("tcp.bytes", a), inject.Bytes("tcp.bytes", b[:min(len(b), quantum)]))
	}
	c.done()
	if errno != 0 {
		return 0, c.failure("sending to", errno)
	}
	return n, nil
}

// receiveNow receives into a and then b, which may be nil, what is as it was sent: see TryRecv and
// TryRecvBoth.
func (c *Conn) receiveNow(a, b []byte) (n int, err error) {
	switch {
	case len(a) == 0:
		return 0, nil
	case c.polled != nil:
		return eachOfBoth(a, b, c.polled.TryRead)
	}
	if !c.use() {
		return 0, net.ErrClosed
	}
	n, errno := c.receive(a, b)
	c.done()
	if n == 0 {
		return 0, c.failure("receiving from", errno)
	}
	return n, nil
}

// ahead is what one call of the kernel has received beyond what was asked for. Where a peer sends
// faster than this rank receives, that saves a call for nearly every small message.
type ahead struct {
	mem  []byte      // made when first used
	left []byte      // of mem, what has not been asked for
	some atomic.Bool // something is left: for Waits of another goroutine
}

const (
	aheadBytes = 8 << 10
	aheadUpTo  = 4608 // bytes asked for, up to which another copy costs less than a call: 4 KiB and a header
)

// take moves what there is into b.
func (a *ahead) take(b []byte) int {
	n := copy(b, a.left)
	a.left = a.left[n:]
	return n
}

// note tells Waits.
func (a *ahead) note() {
	if some := len(a.left) > 0; some != a.some.Load() {
		a.some.Store(some)
	}
}

// receive receives into a and then b.
func (c *Conn) receive(a, b []byte) (n int, errno syscall.Errno) {
	if len(c.ahead.left) == 0 {
		switch {
		case len(a)+len(b) > aheadUpTo && len(b) == 0:
			return receive(c.fd, a[:min(len(a), quantum)])
		case len(a)+len(b) > aheadUpTo:
			return receiveBoth(c.fd, a, b[:min(len(b), quantum)])
		case c.ahead.mem == nil:
			c.ahead.mem = make([]byte, aheadBytes)
		}
		n, errno = receive(c.fd, c.ahead.mem)
		c.ahead.left = c.ahead.mem[:n]
	}
	n = c.ahead.take(a)
	n += c.ahead.take(b)
	c.ahead.note()
	return n, errno
}

// failure is the error of a call that moved nothing: nil if that means only "not
// now". No errno is the end of what the peer sent.
func (c *Conn) failure(what string, errno syscall.Errno) error {
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case c.users.Load()&closedBit != 0:
		return net.ErrClosed // Close, under the call, looks like a failure of the peer
	case errno == 0 && c.relay != nil:
		return c.relay
	case errno == 0:
		return io.EOF
	}
	return fmt.Errorf("tcp: %s %v: %w", what, c.peer, errno)
}

// Close ends the stream. What was sent is still delivered. It wakes Waits for what it receives;
// a second Close, or one after Abort, does nothing.
func (c *Conn) Close() error {
	if c.polled != nil {
		return c.closePolled()
	}
	if c.shut() {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
		c.drain()
		c.done()
	}
	return nil
}

// Abort ends the stream at once: what was sent may be lost, and the peer sees the
// connection reset. It wakes Waits for what it receives. After Close it does nothing.
func (c *Conn) Abort() {
	if c.polled != nil {
		c.users.Or(closedBit)
		c.polled.Abort()
		return
	}
	if c.shut() {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		// This side only: the other is to see a reset, not an orderly end.
		unix.Shutdown(c.fd, unix.SHUT_RD)
		c.done()
	}
}

// RoundTrip is how long a packet to the peer and back takes at least, 0 where that is not known.
func (c *Conn) RoundTrip() time.Duration {
	if c.polled != nil {
		return c.polled.RoundTrip()
	}
	if !c.use() {
		return 0
	}
	defer c.done()
	return roundTrip(c.fd)
}

func (c *Conn) isClosed() bool { return c.users.Load()&closedBit != 0 }

// shut marks c closed, and is true for the first to do so; a done must follow then.
func (c *Conn) shut() bool {
	c.users.Add(2)
	if c.users.Or(closedBit)&closedBit != 0 {
		c.done()
		return false
	}
	return true
}

// drain discards what has come and nobody received. A socket closed over it resets
// the connection, and what it sent, and is under way still, would be lost.
func (c *Conn) drain() {
	b := make([]byte, 64<<10)
	for range 128 { // 8 MiB: more than sockets hold
		if n, errno := receive(c.fd, b); n == 0 || errno != 0 {
			return
		}
	}
}
