package boot

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/inject"
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
	self join // the rank of this process
	job  string

	acceptor
	tree   tree
	seen   netip.Addr // the address of this host at which another host reached it first; guarded by mu
	events chan event
	coming atomic.Int32 // connections that are let in, and whose coming the loop has not seen

	// Only the loop touches these.
	children map[*child]struct{}
	local    *child
	held     withheld
	unacked  int // confirmations outstanding: those of the local rank too
}

// withheld is what the rank of this process gets once all others have confirmed.
type withheld struct {
	frames [][]byte
	own    term // the rank waits for no verdict then
	late   term // it gets the frames then, whoever has not confirmed them
}

// child is one connection: a rank of this host, or a relay, with all ranks behind it.
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
	eventFailed // one that was let in does not come
)

func newHostServer(self join, job string) hostServer {
	most, few := branchesOf(self.Size), 0
	if most > 0 {
		few = prompt
	}
	return hostServer{
		self: self, job: job,
		acceptor: newAcceptor(few),
		tree:     tree{most: most},
		events:   make(chan event, 64),
		children: map[*child]struct{}{},
	}
}

// attach connects the rank of this process. Call it before the loop starts.
func (c *hostServer) attach() *auth.Stream {
	here, there := auth.Pipe()
	c.local = newChild(there, c.self, true)
	c.admit(there)
	c.coming.Add(1)
	c.serve(c.local, there)
	return here
}

// listen lets in what connects to l and knows the secret, until close or deafen.
func (c *hostServer) listen(l net.Listener, secret auth.Secret) {
	c.acceptor.listen(l, secret, c.greet)
}

// reached notes the address of this host at which another process of the job has reached it.
func (c *hostServer) reached(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := addrOf(conn.LocalAddr()); a.IsValid() && !a.IsLoopback() && !c.seen.IsValid() {
		c.seen = a
	}
}

// forget closes a connection that has ended.
func (c *hostServer) forget(conn net.Conn) {
	c.acceptor.forget(conn)
	c.tree.leave(conn)
}

// greet is the handshake with one connection; what fails it, or is sent elsewhere, is dropped.
func (c *hostServer) greet(conn net.Conn, d *door, stranger *auth.Stranger) {
	s, who := c.vet(conn, d, stranger)
	if s == nil {
		c.forget(conn)
		return
	}
	conn.SetDeadline(time.Time{})
	c.serve(newChild(s, who, isLocal(conn)), conn)
}

// vet finds out whether conn is one of the job's that this process is to serve, and whose: else there is no stream.
func (c *hostServer) vet(conn net.Conn, d *door, stranger *auth.Stranger) (s *auth.Stream, who join) {
	conn.SetDeadline(time.Now().Add(handshakeLimit))
	reply, let := c.self, false
	err := auth.SameUser(conn, d.secret)
	if err == nil {
		s, _, err = auth.Server(conn, c.job, d.secret, func(hello []byte) ([]byte, error) {
			var err error
			if who, err = parseJoin(hello); err == nil && !isLocal(conn) {
				if (way{Rank: c.self.Rank, PID: c.self.PID, Host: c.self.Host}).leadsTo(who) {
					return nil, errSelf
				}
				reply.To = c.tree.place(conn, who)
			}
			if err == nil && reply.To == nil && !stranger.Leave() { // what is let in must not be dropped to make room
				err = net.ErrClosed
			}
			if let = err == nil && reply.To == nil; let {
				c.coming.Add(1) // before the other end knows that it is served here
			}
			return reply.encode(), err
		})
	}
	if err == nil {
		c.reached(conn)
	}
	if reply.To != nil {
		s = nil
		conn.Close() // which keeps its place until then
	}
	if let && s == nil {
		c.post(event{kind: eventFailed})
	}
	stranger.Judge(err)
	return s, who
}

// behind lists the ranks that joined through ch: first the one that made the connection, whose end is the cause.
func (ch *child) behind() []int {
	ranks := slices.Sorted(maps.Keys(ch.ranks))
	if i, ok := slices.BinarySearch(ranks, ch.who.Rank); ok {
		ranks = slices.Insert(slices.Delete(ranks, i, i+1), 0, ch.who.Rank)
	}
	return ranks
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

// came and gone keep the set of children; the loop calls them first. came has nil for one that does not come after all.
func (c *hostServer) came(ch *child) {
	if c.coming.Add(-1); ch != nil {
		c.children[ch] = struct{}{}
	}
}

func (c *hostServer) gone(ch *child) {
	delete(c.children, ch)
	c.unacked -= ch.unacked
	ch.unacked = 0
}

// broadcast sends each child its frame, the local rank once the others have confirmed: at the latest after
// confirmLimit, since all others may be in the job by then, and one that does not confirm may be lost.
func (c *hostServer) broadcast(of func(*child) []byte) {
	for ch := range c.children {
		if ch != c.local {
			c.send(ch, of(ch))
		}
	}
	c.held.frames = append(c.held.frames, of(c.local))
	if !inject.Wrong("boot.confirm") {
		c.held.late.set(confirmLimit)
	}
}

// broadcastFailure has c send the verdict b to all. The local rank does not get a table that it has
// not been given: another rank could not read it. It gets the frame that confirms its joining, and
// then the verdict.
func broadcastFailure(c *hostServer, b []byte) {
	c.held.frames = slices.DeleteFunc(c.held.frames, func(f []byte) bool { return f[0] == frameTable })
	c.broadcast(func(*child) []byte { return b })
	c.held.late.clear() // bad news has a time of its own
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
	for _, b := range c.held.frames {
		select {
		case c.local.out <- b:
			c.local.unacked++
			c.unacked++
		default:
		}
	}
	c.held.frames = nil
	c.held.late.clear()
}

// encode writes j for a handshake or a frame.
func (j join) encode() []byte {
	b, _ := json.Marshal(j) // strings and numbers always can
	return b
}
