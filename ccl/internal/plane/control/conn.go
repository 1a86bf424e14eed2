package control

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/simhost"
)

// Conn is a connection with the process that leads another host. What is written may wait for a slow neighbor; nothing
// waits long.
type Conn struct {
	Stream *auth.Stream
	Host   int // at the other end
	First  int // and the lowest rank of the process there
	wmu    simhost.Mutex
	out    [FrameMax]byte // under wmu: what is written, so that a beat allocates nothing
	batch  []byte         // under wmu: frames for the next flush
}

// InTree reports whether the connection, as host node has it, is one of the tree.
func (c *Conn) InTree(node int) bool {
	low, high := min(node, c.Host), max(node, c.Host)
	return low == (high-1)/2
}

// Towards is the next host on the way through the tree from host h to host to, which is another.
func Towards(h, to int) int {
	for to > h {
		up := (to - 1) / 2
		if up == h {
			return to
		}
		to = up
	}
	return (h - 1) / 2
}

// Greet says the first word on a new connection, by which the other end knows that somebody was
// there, and what has happened so far.
func (c *Conn) Greet(old []event.Event) {
	c.Beat()
	for i := range old {
		c.sendEvent(&old[i])
	}
}

// Beat says that this host is alive. A failure to write, as of any frame, shows at the reading end.
func (c *Conn) Beat() {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.write(FrameBeat, FrameHead)
}

// sendEvent sends e at once.
func (c *Conn) sendEvent(e *event.Event) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.write(FrameEvent, FrameHead+len(e.Encode(c.out[FrameHead:])))
}

// sendStatus sends at once what is told of the order of calls, unless the neighbor is slow. With
// the next flush it sends what is told of a rank, since many do that at the same time.
func (c *Conn) sendStatus(s *status.Status) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if s.Brief && c.Stream.Unsent() == 0 {
		s.Encode(c.out[FrameHead:])
		c.write(FrameStatus, FrameHead+status.Wire)
		return
	}
	n := len(c.batch)
	c.batch = append(c.batch, c.out[:FrameHead+status.Wire]...)
	f := c.batch[n:]
	putHead(f, FrameStatus)
	s.Encode(f[FrameHead:])
	if len(c.batch) > batchMax {
		c.writeBatch()
	}
}

// batchMax is how much is kept for a flush.
const batchMax = 4 << 10

// Flush sends what sendStatus has kept, and reports whether some of it could not go yet.
func (c *Conn) Flush() bool {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	switch {
	case len(c.batch) > 0:
		c.writeBatch()
	case c.Stream.Unsent() > 0:
		c.put(nil)
	}
	return c.Stream.Unsent() > 0
}

// writeBatch writes what is kept. c.wmu is held.
func (c *Conn) writeBatch() {
	if c.Stream.Unsent() <= unsentMax { // else a neighbor that does not read need not know where ranks stand
		c.put(c.batch)
	}
	c.batch = nil
}

const (
	unsentMax = 64 << 10
	sendFor   = 20 * time.Millisecond // for a neighbor to take what is sent
	resendFor = time.Millisecond      // the same, for one that has not before
)

// put sends frames after all that has been put before. What a neighbor does not take in time waits for the next put or
// flush, so that no frame is cut: a slow neighbor is slow, and not lost. c.wmu is held.
func (c *Conn) put(frames []byte) {
	limit := sendFor
	if c.Stream.Unsent() > 0 {
		limit = resendFor
	}
	c.putWithin(frames, limit)
}

// putWithin is put with another time for the neighbor to take what is sent. c.wmu is held.
func (c *Conn) putWithin(frames []byte, limit time.Duration) {
	c.Stream.SetWriteDeadline(time.Now().Add(limit))
	c.Stream.Write(frames) // which keeps what is late; of any other failure the reading end finds out
}

// putHead writes the head of the frame f.
func putHead(f []byte, kind byte) {
	binary.LittleEndian.PutUint16(f, uint16(len(f)))
	f[2], f[3] = kind, FrameVersion
}

// write writes the first n bytes of c.out as a frame. c.wmu is held.
func (c *Conn) write(kind byte, n int) {
	putHead(c.out[:n], kind)
	if inject.Cut("control.send") {
		return
	}
	if kind == FrameBeat && c.Stream.Unsent() > 0 { // which is as good a sign of life
		n = 0
	}
	c.put(c.out[:n])
}

// Bye says that this process leaves in good order, after all that it has not been able to say: the other end has byeFor
// to take that. It closes this end alone: what the other end has sent
// meanwhile would make the system take the good bye back (RFC 1122, 4.2.2.13).
func (c *Conn) Bye() {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if putHead(c.out[:FrameHead], FrameBye); !inject.Cut("control.send") {
		c.putWithin(c.out[:FrameHead], byeFor)
	}
	if c.Stream.CloseWrite() == nil {
		c.Stream.SetReadDeadline(time.Now().Add(byeFor))
		return
	}
	c.Stream.Close()
}

// ByeAndClose is Bye on a connection that nobody else uses.
func (c *Conn) ByeAndClose() {
	c.Bye()
	_, _ = io.Copy(io.Discard, c.Stream)
	c.Stream.Close()
}

// byeFor is how long the other end has to hear that this one leaves.
const byeFor = 200 * time.Millisecond
