package simnet

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

// conn is one end of a connection: a simhost.Polled. The network's lock guards all of it.
type conn struct {
	net           *Net
	host          *Host
	peer          *conn
	local, remote netip.AddrPort
	link          *Link
	name          string     // of a socket that does not leave the host; "": TCP
	rng           *rand.Rand // of what it sends
	in            *inbound
	closed        bool
	wrote         bool  // CloseWrite
	failed        error // reset
	writing       time.Time
	moved         chan struct{} // closed, and made anew, when something changes
	tell          []chan struct{}
}

// inbound is what comes to one end of a connection.
type inbound struct {
	c         *conn
	flying    []segment
	bytes     int // flying and ready
	ready     []byte
	fin       bool      // after ready
	last      time.Time // when what was sent last has left
	reading   time.Time // deadline
	forgotten bool      // of c: see Forget
}

// segment is a piece of what is under way.
type segment struct {
	b   []byte
	at  time.Time
	fin bool
}

func newConn(h *Host, local, remote netip.AddrPort, rng *rand.Rand) *conn {
	c := &conn{net: h.net, host: h, local: local, remote: remote, link: &h.net.link, rng: rng, moved: make(chan struct{})}
	c.in = &inbound{c: c}
	return c
}

// String tells the connection apart: the hosts, and the port of the end that dialed.
func (c *conn) String() string {
	return fmt.Sprintf("%d>%d:%d", c.host.number, c.peer.host.number, max(c.local.Port(), c.remote.Port()))
}

func (c *conn) between(a, b int) bool {
	x, y := c.host.number, c.peer.host.number
	return x == a && y == b || x == b && y == a
}

// trip is how long a packet takes.
func (l *Link) trip(rng *rand.Rand) time.Duration {
	d := l.Delay
	if l.Jitter > 0 {
		d += time.Duration(rng.Int64N(int64(l.Jitter)))
	}
	for wait := again; l.Loss > 0 && rng.Float64() < l.Loss; wait *= 2 {
		d += wait
	}
	return d
}

// gridded is when what would come at that time does.
func (n *Net) gridded(l *Link, at time.Time) time.Time {
	if l.Grid > 0 {
		if past := at.Sub(n.began) % l.Grid; past > 0 {
			at = at.Add(l.Grid - past)
		}
	}
	return at
}

// change wakes what waits for c.
func (c *conn) change() {
	close(c.moved)
	c.moved = make(chan struct{})
	for _, ch := range c.tell {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// send puts b on its way to the other end.
func (c *conn) send(b []byte, fin bool) {
	if c.in.forgotten {
		c.net.tell("reset %v, which is forgotten", c)
		c.reset()
		c.peer.reset()
		return
	}
	h := c.peer.in
	at := time.Now()
	if h.last.After(at) {
		at = h.last
	}
	if r := c.link.Rate; r > 0 {
		at = at.Add(time.Duration(float64(len(b)) / r * 1e9))
	}
	h.last = at
	at = c.net.gridded(c.link, at.Add(c.link.trip(c.rng)))
	if k := len(h.flying); k > 0 && h.flying[k-1].at.After(at) {
		at = h.flying[k-1].at
	}
	h.flying = append(h.flying, segment{slices.Clone(b), at, fin})
	h.bytes += len(b)
	if fin {
		c.net.sent("fin", c, 0)
	} else {
		c.net.sent("send", c, len(b))
	}
	c.net.after(time.Until(at), h.deliver)
}

// after calls f with the lock, after d.
func (n *Net) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		f()
	})
}

// deliver moves what has come.
func (h *inbound) deliver() {
	c := h.c
	if c.net.cut[way{c.peer.host.number, c.host.number}] {
		return
	}
	now, some := time.Now(), false
	for len(h.flying) > 0 && !h.flying[0].at.After(now) {
		s := h.flying[0]
		h.flying = h.flying[1:]
		some = true
		switch {
		case s.fin:
			h.fin = true
		case c.closed: // the kernel of a closed end resets
			h.bytes -= len(s.b)
			c.peer.reset()
		default:
			h.ready = append(h.ready, s.b...)
		}
	}
	if some {
		c.change()
	}
}

// reset ends c with ECONNRESET. What has come can be read.
func (c *conn) reset() {
	if c.failed == nil {
		c.failed = syscall.ECONNRESET
		c.in.flying = nil
		c.change()
		c.peer.change()
	}
}

// end is what the kernel does once nobody uses c.
func (c *conn) end() {
	if c.closed {
		return
	}
	c.closed = true
	if c.in.bytes > 0 { // unread: the other end is reset
		c.resetPeer()
	} else if !c.wrote {
		c.send(nil, true)
	}
	c.change()
	c.peer.change()
}

// resetPeer sends a reset.
func (c *conn) resetPeer() {
	c.net.sent("rst", c, 0)
	c.net.after(c.link.trip(c.rng), func() {
		if !c.net.cut[way{c.host.number, c.peer.host.number}] {
			c.peer.reset()
		}
	})
}

func failure(what string, err error) error {
	if en, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(what, en)
	}
	return &net.OpError{Op: what, Net: "tcp", Err: err}
}

// read is one try; n is -1 if there is nothing now.
func (c *conn) read(b []byte) (n int, err error) {
	switch {
	case c.closed:
		return 0, failure("read", net.ErrClosed)
	case len(c.in.ready) > 0:
		full := c.in.bytes >= c.link.Window
		n = copy(b, c.in.ready)
		c.in.ready = c.in.ready[n:]
		c.in.bytes -= n
		if full {
			c.peer.change()
		}
		return n, nil
	case c.failed != nil:
		return 0, failure("read", c.failed)
	case c.in.fin:
		return 0, io.EOF
	}
	return -1, nil
}

// segmentMost is how much is sent at once.
const segmentMost = 64 << 10

// write is one try; n is -1 if there is no room now.
func (c *conn) write(b []byte) (n int, err error) {
	switch {
	case c.closed || c.wrote:
		return 0, failure("write", net.ErrClosed)
	case c.failed != nil:
		return 0, failure("write", c.failed)
	}
	if n = min(len(b), c.link.Window-c.peer.in.bytes, segmentMost); n <= 0 {
		return -1, nil
	}
	c.send(b[:n], false)
	return n, nil
}

// wait waits for a change, until that time.
func wait(moved chan struct{}, until time.Time) {
	if until.IsZero() {
		<-moved
		return
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-moved:
	case <-t.C:
	}
}

// try calls step, with the lock, until it moves something or fails, or the deadline has passed.
func (c *conn) try(what string, deadline *time.Time, step func() (int, error)) (int, error) {
	for {
		c.host.Live()
		c.net.mu.Lock()
		if t := *deadline; !t.IsZero() && !time.Now().Before(t) && !c.closed {
			c.net.mu.Unlock()
			return 0, failure(what, os.ErrDeadlineExceeded)
		}
		n, err := step()
		moved, until := c.moved, *deadline
		c.net.mu.Unlock()
		if n >= 0 {
			return n, err
		}
		wait(moved, until)
	}
}

func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return c.try("read", &c.in.reading, func() (int, error) { return c.read(b) })
}

func (c *conn) Write(b []byte) (all int, err error) {
	for len(b) > 0 {
		n, err := c.try("write", &c.writing, func() (int, error) { return c.write(b) })
		if all += n; err != nil {
			return all, err
		}
		b = b[n:]
	}
	return all, nil
}

func (c *conn) TryRead(b []byte) (int, error) {
	c.host.Live()
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	n, err := c.read(b)
	return max(n, 0), err
}

func (c *conn) TryWrite(b []byte) (int, error) {
	c.host.Live()
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	n, err := c.write(b)
	return max(n, 0), err
}

func (c *conn) Ready(write bool) bool {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	switch {
	case c.closed || c.failed != nil:
		return true
	case write:
		return c.peer.in.bytes < c.link.Window
	}
	return len(c.in.ready) > 0 || c.in.fin
}

func (c *conn) Tell(ch chan struct{}) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.tell = append(c.tell, ch)
}

func (c *conn) Untell(ch chan struct{}) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if i := slices.Index(c.tell, ch); i >= 0 {
		c.tell = slices.Delete(slices.Clone(c.tell), i, i+1)
	}
}

// Close ends c in order: what has been sent is still delivered.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.end()
	return nil
}

func (c *conn) CloseWrite() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if !c.closed && !c.wrote && c.failed == nil {
		c.wrote = true
		c.send(nil, true)
	}
	return nil
}

// SetLinger does nothing.
func (c *conn) SetLinger(int) error { return nil }

// Abort resets the other end.
func (c *conn) Abort() {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.change()
		c.resetPeer()
	}
}

func (c *conn) RoundTrip() time.Duration { return 2 * c.link.Delay }
func (c *conn) LocalAddr() net.Addr      { return c.addr(c.local) }
func (c *conn) RemoteAddr() net.Addr     { return c.addr(c.remote) }

func (c *conn) addr(at netip.AddrPort) net.Addr {
	if c.name != "" {
		return &net.UnixAddr{Name: c.name, Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(at)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(&c.in.reading, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writing, t) }

func (c *conn) setDeadline(d *time.Time, t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	*d = t
	c.change()
	return nil
}
