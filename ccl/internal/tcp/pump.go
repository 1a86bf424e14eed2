package tcp

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// pump is what Conn is where sockets cannot be polled by hand: two goroutines move
// bytes between a blocking connection and two bounded buffers. It serves Windows and
// others, and is tested everywhere.
type pump struct {
	conn    duplex
	flushed chan struct{} // nothing more goes out

	sending, receiving idler // each of the goroutine that does it

	mu      sync.Mutex
	in, out ring
	inErr   error     // why nothing more comes in; what is in is still received
	outErr  error     // why nothing more goes out
	closed  bool      // by Close or Abort
	moved   sync.Cond // any of these has changed
}

// pumpBytes is the size of a buffer, which is also the most that one call moves.
const pumpBytes = 256 << 10

// lingering is how long a closed pump has for the bytes that are still in it.
const lingering = 2 * time.Second

// idler counts the calls in a row that moved nothing. After so many it rests, for Go
// looks at its connections in earnest only when a processor is idle: with all of
// them spinning a round trip took 110 ms, and so it takes 0.2.
type idler int

func (i *idler) rest(moved bool) {
	if moved {
		*i = 0
	} else if *i++; *i%32 == 0 {
		time.Sleep(20 * time.Microsecond)
	}
}

// duplex is a connection each direction of which ends by itself: a *net.TCPConn, or that of a simhost.Host.
type duplex interface {
	net.Conn
	CloseWrite() error
	SetLinger(sec int) error
}

func newPump(tc duplex) *pump {
	p := &pump{conn: tc, in: newRing(pumpBytes), out: newRing(pumpBytes), flushed: make(chan struct{})}
	p.moved.L = &p.mu
	go p.pumpOut()
	go p.pumpIn()
	return p
}

// TrySend takes what fits into the buffer now and returns how many bytes that was: 0
// and no error if it would have to wait.
func (p *pump) TrySend(b []byte) (n int, err error) {
	n, err = p.trySend(b)
	p.sending.rest(n > 0 || err != nil)
	return n, err
}

func (p *pump) trySend(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, net.ErrClosed
	case p.outErr != nil:
		return 0, p.outErr
	}
	if n = copy(p.out.free(), b); n > 0 {
		p.out.put(n)
		p.moved.Broadcast()
	}
	return n, nil
}

// TryRecv receives what is there, up to len(b) bytes: 0 and no error if nothing is.
// After the last byte of a peer that has closed it returns io.EOF.
func (p *pump) TryRecv(b []byte) (n int, err error) {
	n, err = p.tryRecv(b)
	p.receiving.rest(n > 0 || err != nil)
	return n, err
}

func (p *pump) tryRecv(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, net.ErrClosed
	}
	if n = copy(b, p.in.filled()); n > 0 {
		p.in.take(n)
		p.moved.Broadcast()
		return n, nil
	}
	if len(b) == 0 || p.inErr == nil {
		return 0, nil
	}
	return 0, p.inErr
}

// TrySendBoth is TrySend of a and then b.
func (p *pump) TrySendBoth(a, b []byte) (n int, err error) { return eachOfBoth(a, b, p.TrySend) }

// TryRecvBoth is TryRecv into a and then b.
func (p *pump) TryRecvBoth(a, b []byte) (n int, err error) { return eachOfBoth(a, b, p.TryRecv) }

// eachOfBoth moves a and, once that is done, b. What fails after a has moved will fail again.
func eachOfBoth(a, b []byte, move func([]byte) (int, error)) (int, error) {
	n, err := move(a)
	if n < len(a) || len(b) == 0 || err != nil {
		return n, err
	}
	m, _ := move(b)
	return n + m, nil
}

// Wait blocks until there is something to receive, or with write also until there is
// room to send, or the stream ends, but no longer than d.
func (p *pump) Wait(d time.Duration, write bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d <= 0 || p.ready(write) {
		return
	}
	late := false
	timer := time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		late = true
		p.moved.Broadcast()
	})
	defer timer.Stop()
	for !late && !p.ready(write) {
		p.moved.Wait()
	}
}

func (p *pump) ready(write bool) bool {
	return p.closed || p.inErr != nil || len(p.in.filled()) > 0 ||
		write && (p.outErr != nil || len(p.out.free()) > 0)
}

// Close ends the stream. What was sent is still delivered: Close waits for it to
// reach the kernel, since the process may end next. It wakes a Wait; a second Close,
// or one after Abort, does nothing.
func (p *pump) Close() error {
	if p.shut() {
		p.conn.SetDeadline(time.Now().Add(lingering))
		<-p.flushed
	}
	return nil
}

// Abort ends the stream at once: what was sent may be lost, and the peer sees the
// connection reset. It wakes a Wait. After Close it does nothing.
func (p *pump) Abort() {
	if p.shut() {
		p.conn.SetLinger(0)
		p.conn.Close()
	}
}

func (p *pump) shut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.closed = true
	p.moved.Broadcast()
	return true
}

// pumpOut writes what TrySend has put in, until the stream ends.
func (p *pump) pumpOut() {
	defer close(p.flushed)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		b := p.out.filled()
		if len(b) == 0 {
			if p.closed {
				p.conn.CloseWrite()
				return
			}
			p.moved.Wait()
			continue
		}
		// The bytes stay where they are while the lock is open: nobody else takes any.
		p.mu.Unlock()
		n, err := p.conn.Write(b)
		p.mu.Lock()
		p.out.take(n)
		if err != nil {
			p.outErr = fmt.Errorf("tcp: sending to %v: %w", p.conn.RemoteAddr(), err)
		}
		p.moved.Broadcast()
		if err != nil {
			return
		}
	}
}

// pumpIn reads for TryRecv, until the stream ends. After Close it discards: what is
// left unread when the connection closes would reset it. It is the one to close it.
func (p *pump) pumpIn() {
	defer p.conn.Close()
	defer func() { <-p.flushed }()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.closed {
			p.in.take(len(p.in.filled()))
		}
		b := p.in.free()
		if len(b) == 0 {
			p.moved.Wait()
			continue
		}
		p.mu.Unlock()
		n, err := p.conn.Read(b)
		p.mu.Lock()
		p.in.put(n)
		if err == io.EOF {
			p.inErr = io.EOF
		} else if err != nil {
			p.inErr = fmt.Errorf("tcp: receiving from %v: %w", p.conn.RemoteAddr(), err)
		}
		p.moved.Broadcast()
		if err != nil {
			return
		}
	}
}
