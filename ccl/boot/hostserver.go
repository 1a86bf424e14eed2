package boot

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

const (
	// handshakeLimit is how long a connection may take to say who it is.
	handshakeLimit = 5 * time.Second
	// confirmLimit is how long others may take to confirm bad news before the
	// rank that serves them goes without: it may be the end of its process.
	confirmLimit = time.Second
)

// hostServer serves the connections of a root server or a relay. It admits processes that know the
// secret, turns their frames into events for one loop, and counts their confirmations. The rank of
// this process is connected by a pipe. It gets each message last, because it may end then, and the
// server with it.
type hostServer struct {
	self   join // the rank of this process
	job    string
	secret []byte

	acceptor
	events chan event
	wg     sync.WaitGroup

	// Only the loop touches these.
	children map[*child]struct{}
	local    *child
	held     [][]byte // frames for local, until all others have confirmed
	unacked  int      // confirmations outstanding
}

// child is one connection: a rank of this host, or the relay of another one.
type child struct {
	conn    *auth.Stream
	who     join // the rank that made the connection
	within  bool // it does not leave this host
	out     chan []byte
	unacked int
	ranks   map[int]struct{} // those that joined through it
	told    bool             // it has been sent a verdict: what it sends later gets no other
	taken   int              // how many of its joins counted
}

// event is a frame from a child, or the beginning or the end of its connection.
type event struct {
	child *child
	kind  eventKind
	frame frame
}

type eventKind uint8

const (
	eventCame eventKind = iota
	eventFrame
	eventChanged // what it sent is read no more, but it is there
	eventGone
)

func newHostServer(self join, job string, secret []byte) hostServer {
	return hostServer{
		self: self, job: job, secret: secret,
		acceptor: newAcceptor(),
		events:   make(chan event, 64),
		children: map[*child]struct{}{},
	}
}

// attach connects the rank of this process. Call it before the loop starts.
func (c *hostServer) attach() *auth.Stream {
	here, there := auth.Pipe()
	c.local = newChild(there, c.self, true)
	c.admit(there)
	c.serve(c.local, there)
	return here
}

// listen lets in what connects to l, until close or deafen.
func (c *hostServer) listen(l net.Listener) {
	c.open(l)
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil && c.admit(conn):
				if s := c.strangers.Admit(conn); s != nil {
					c.wg.Go(func() { c.greet(conn, s) })
				} else {
					c.forget(conn)
				}
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // out of descriptors, say: make room and go on
				c.strangers.MakeRoom()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-c.done:
				}
			}
		}
	})
}

// greet is the handshake with one connection; what fails it is dropped.
func (c *hostServer) greet(conn net.Conn, stranger *auth.Stranger) {
	s, who := c.vet(conn, stranger)
	if s == nil {
		c.forget(conn)
		return
	}
	conn.SetDeadline(time.Time{})
	_, within := conn.(*net.UnixConn)
	c.serve(newChild(s, who, within), conn)
}

// vet finds out whether conn is one of the job's, and whose: else there is no stream.
func (c *hostServer) vet(conn net.Conn, stranger *auth.Stranger) (s *auth.Stream, who join) {
	conn.SetDeadline(time.Now().Add(handshakeLimit))
	err := auth.SameUser(conn, c.secret)
	if err == nil {
		s, _, err = auth.Server(conn, c.job, c.secret, func(hello []byte) (reply []byte, err error) {
			if who, err = parseJoin(hello); err == nil && !stranger.Leave() { // what is let in must not be dropped to make room
				err = net.ErrClosed
			}
			return c.self.encode(), err
		})
	}
	if err == nil {
		c.reached(conn)
	}
	stranger.Judge(err)
	return s, who
}

func newChild(conn *auth.Stream, who join, within bool) *child {
	// Between two confirmations there is one table at most, and one verdict.
	return &child{conn: conn, who: who, within: within, out: make(chan []byte, 4), ranks: map[int]struct{}{}}
}

// serve starts the two goroutines of a child, which the acceptor knows as conn.
func (c *hostServer) serve(ch *child, conn net.Conn) {
	c.wg.Go(func() {
		for {
			select {
			case b := <-ch.out:
				if _, err := ch.conn.Write(b); err != nil {
					return // the reader sees it too
				}
			case <-c.done:
				return
			}
		}
	})
	c.wg.Go(func() {
		defer c.forget(conn)
		c.post(event{child: ch, kind: eventCame})
		for r := bufio.NewReader(ch.conn); ; {
			f, err := readFrame(r, maxUp)
			if errors.Is(err, auth.ErrChanged) {
				c.post(event{child: ch, kind: eventChanged})
				ch.conn.Drain()
			}
			if err != nil {
				c.post(event{child: ch, kind: eventGone})
				return
			}
			c.post(event{child: ch, kind: eventFrame, frame: f})
		}
	})
}

func (c *hostServer) post(e event) {
	select {
	case c.events <- e:
	case <-c.done:
	}
}

// came and gone keep the set of children; the loop calls them first.
func (c *hostServer) came(ch *child) { c.children[ch] = struct{}{} }

func (c *hostServer) gone(ch *child) {
	delete(c.children, ch)
	c.unacked -= ch.unacked
	ch.unacked = 0
}

// broadcast sends each child its frame, the local rank once the others have confirmed.
func (c *hostServer) broadcast(of func(*child) []byte) {
	for ch := range c.children {
		if ch != c.local {
			c.send(ch, of(ch))
		}
	}
	c.held = append(c.held, of(c.local))
}

// send queues a frame for one child that is not the local one.
func (c *hostServer) send(ch *child, b []byte) {
	ch.told = true
	select {
	case ch.out <- b:
		ch.unacked++
		c.unacked++
	default: // it reads nothing: it breaks the protocol, or has stopped
		ch.conn.Close()
	}
}

// acked notes one confirmation.
func (c *hostServer) acked(ch *child) {
	if ch.unacked > 0 {
		ch.unacked--
		c.unacked--
	}
}

// release hands what was held to the local rank.
func (c *hostServer) release() {
	for _, b := range c.held {
		select {
		case c.local.out <- b:
		default:
		}
	}
	c.held = nil
}

// close ends everything and waits until it has ended.
func (c *hostServer) close() {
	c.shut()
	c.wg.Wait()
}

// encode writes j for a handshake or a frame.
func (j join) encode() []byte {
	b, _ := json.Marshal(j) // strings and numbers always can
	return b
}
