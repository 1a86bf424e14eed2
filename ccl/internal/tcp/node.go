// Package tcp is the streams of bytes between ranks over TCP: authenticated, and connected on first
// use.
//
// A process has one Node per job, shared by all its ranks. Open returns a rank's end of a stream as
// soon as the two Nodes have agreed on its connection; the peer rank need not take part. Both ends
// may dial at once, as all do in the first step of a ring. The end that dials runs the handshake of package
// auth, with the end's name as its hello, is told whether the connection is taken, and says go if
// it still wants it. The Node of the lower rank decides which connection it shall be:
//
//   - a dial of the higher rank that comes before the lower rank's own has reached the other side
//     is taken, and the lower rank waits for it;
//   - one that comes later is turned away, since the lower rank's is about to arrive.
//
// As one lock in one process decides, both ends always settle on the same one.
//
// A socket that carries data is not in Go's poller, where each arrival would wake a thread: the
// engine polls it, and yields by itself.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/relay"
	"github.com/goccl/goccl/internal/simhost"
)

// handshakeTime is for a stranger to prove itself: as long as a process of the job may take where
// hundreds share a processor. Where strangers are many, the oldest goes long before.
const handshakeTime = 30 * time.Second

// What a Node replies to an authenticated hello.
const (
	taken   = "taken"   // say go, and the connection is the stream
	crossed = "crossed" // the lower rank's connection is on its way: wait for that
)

// goAhead is the byte by which the dialing end makes a connection that was taken the
// stream. One it has no use for any more, it closes: so none is kept that nobody uses.
const goAhead = 'g'

// Node is a process's end of all TCP streams of a job: one listener, shared by all
// ranks of the process.
type Node struct {
	terms
	l net.Listener

	ctx       context.Context // ends with Close, and has the simhost.Host of the process
	stop      context.CancelFunc
	wg        sync.WaitGroup
	strangers *auth.Strangers
	trouble   atomic.Pointer[error]
	out       outward

	mu   sync.Mutex
	ends map[endID]*end
	live map[member]bool                       // those of Announced communicators that are expected and not forgotten
	take map[uint32]func(key Key, self uint32) // by stream: see OnOffer
	over memory                                // what was forgotten of others, or has failed
}

// outward is how a Node reaches its peers.
type outward struct {
	paths relay.Paths
	bears time.Duration // see Bear
}

// terms are what all Nodes of a job have in common.
type terms struct {
	job    string
	secret auth.Secret
	wire   auth.Wire // how data travel
}

// end is what a Node knows of a stream's end, from the first sign of it to the return
// of its Open.
type end struct {
	opening   bool               // an Open is under way
	committed bool               // its own dial has reached the peer's Node
	coming    int                // dials of the peer that were taken and are not in yet
	conn      *auth.Stream       // the connection that the peer dialed
	wake      context.CancelFunc // of an Open that waits or dials
}

// expects says whether the peer's connection is in, or about to be.
func (e *end) expects() bool { return e.conn != nil || e.coming > 0 }

// news wakes the Open of e, if there is one.
func (e *end) news() {
	if e.wake != nil {
		e.wake()
	}
}

func (e *end) close() {
	if e.conn != nil {
		e.conn.Close()
		e.conn = nil
	}
}

// Listen makes the Node of this process. It listens on addr, an address of this host that the other
// processes of the job can reach; see Pick. Data travel as wire says, which is the same in all of
// them.
func Listen(job string, secret auth.Secret, wire auth.Wire, addr netip.Addr) (*Node, error) {
	return ListenAt(nil, job, secret, wire, addr)
}

// ListenAt is Listen of the process of h, which may be nil.
func ListenAt(h simhost.Host, job string, secret auth.Secret, wire auth.Wire, addr netip.Addr) (*Node, error) {
	return newNode(h, addr, terms{job, secret, wire}, handshakeTime)
}

// newNode is ListenAt on those terms. A stranger has that time to prove itself.
func newNode(h simhost.Host, addr netip.Addr, on terms, prove time.Duration) (*Node, error) {
	if !addr.IsValid() {
		return nil, errors.New("tcp: no address to listen on")
	}
	if on.wire != auth.Plain && !on.secret.Known() {
		return nil, fmt.Errorf("Wire (GOCCL_WIRE)=%v, but %w", on.wire, auth.ErrNoSecret)
	}
	l, err := inet.ListenAt(h, netip.AddrPortFrom(addr.Unmap(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("tcp: cannot listen on %v: %w", addr, explain(err))
	}
	if l, err = relay.NewListener(h, l, Found(addrOf(l))); err != nil {
		l.Close()
		return nil, fmt.Errorf("tcp: %w", err)
	}
	n := &Node{
		terms: on, l: l,
		strangers: auth.NewStrangers(l.Addr()),
		out:       outward{bears: unreachedFor},
		ends:      map[endID]*end{},
		live:      map[member]bool{},
	}
	n.ctx, n.stop = context.WithCancel(simhost.With(context.Background(), h))
	n.wg.Go(func() { n.accept(prove) })
	return n, nil
}

// Addr is where the Node listens: what its peers pass to Open.
func (n *Node) Addr() netip.AddrPort { return addrOf(n.l) }

func addrOf(l net.Listener) netip.AddrPort {
	at := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// Found is where ranks of other hosts reach one that listens at that address.
func Found(at netip.AddrPort) netip.AddrPort {
	if told := environ.Advertise.Get(); told.IsValid() && at.Addr().IsUnspecified() {
		return netip.AddrPortFrom(told, at.Port())
	}
	return at
}

// Wire is how data travel.
func (n *Node) Wire() auth.Wire { return n.wire }

// OnOffer sets a function that is called, on a goroutine of its own, when a peer has dialed a
// stream of that number to an end of this Node, self, that nobody is opening; an Open returns the
// connection at once. Close waits for it. It is called for those that have been dialed before, too.
func (n *Node) OnOffer(stream uint32, take func(key Key, self uint32)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.take == nil {
		n.take = map[uint32]func(Key, uint32){}
	}
	n.take[stream] = take
	for id, e := range n.ends {
		if id.Stream == stream && e.conn != nil && !e.opening && n.ctx.Err() == nil {
			n.wg.Go(func() { take(id.Key, id.self) })
		}
	}
}

// Close ends the Node and every Open under way. Streams that are open stay so.
func (n *Node) Close() error {
	n.stop()
	err := n.l.Close()
	n.strangers.Close()
	n.wg.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, e := range n.ends {
		n.drop(id, e)
	}
	if errors.Is(err, net.ErrClosed) {
		return nil // closed before
	}
	return err
}

// known is the end of that name, a new one if it is the first sign of it. n.mu is held.
func (n *Node) known(id endID) *end {
	e := n.ends[id]
	if e == nil {
		e = &end{}
		n.ends[id] = e
	}
	return e
}

// drop forgets an end, and its connection if it has one.
func (n *Node) drop(id endID, e *end) {
	e.close()
	if n.ends[id] == e {
		delete(n.ends, id)
	}
}

// accept takes connections in until the Node is closed. Each has a goroutine of its
// own for the handshake: a silent one keeps nobody waiting.
func (n *Node) accept(prove time.Duration) {
	for delay := time.Duration(0); ; {
		conn, err := n.l.Accept()
		if n.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			// Out of files or memory, or the peer was gone already: none lasts.
			err = fmt.Errorf("tcp: cannot accept connections at %v: %w", n.Addr(), explain(err))
			n.trouble.Store(&err)
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			lived.Sleep(n.ctx, delay)
			continue
		}
		delay = 0
		n.trouble.Store(nil)
		if s := n.strangers.Admit(conn); s != nil {
			n.wg.Go(func() { n.serve(conn, s, prove) })
		}
	}
}

// serve runs the handshake with a connection that came in, and files it.
func (n *Node) serve(conn net.Conn, stranger *auth.Stranger, prove time.Duration) {
	unguard := context.AfterFunc(n.ctx, func() { conn.Close() })
	defer unguard()
	conn.SetDeadline(time.Now().Add(prove))
	var id endID
	var e *end
	s, _, err := auth.Server(conn, n.job, n.secret, func(hello []byte) ([]byte, error) {
		from, err := parseHello(hello)
		if err != nil {
			return nil, err
		}
		// A stranger no more: what is taken now must not be dropped to make room.
		if !stranger.Leave() {
			return nil, net.ErrClosed
		}
		id = from.peer()
		if e, err = n.claim(id); err != nil {
			return nil, err
		}
		if e == nil {
			return []byte(crossed), nil
		}
		return []byte(taken), nil
	})
	if e == nil {
		conn.Close()
		stranger.Judge(err)
		return
	}
	if err == nil {
		err = awaitGo(s, goTime)
	}
	if !unguard() && err == nil { // before it is an Open's, which Close leaves alone
		err = net.ErrClosed
	}
	if err != nil {
		conn.Close()
	}
	n.file(id, e, s, err)
}

// goTime is for the end that dialed, which has proved itself, to say go. It may wait for its turn
// on a processor for long: an end that gave up before would leave the other with a connection that
// is none, and breaks in the first call. Whoever has no use for the connection closes it; one that
// does neither is not to keep it for the life of the Node.
const goTime = 10 * time.Minute

// awaitGo waits for the go of the end that dialed, which takes the connection for made once it has said go.
func awaitGo(s *auth.Stream, limit time.Duration) error {
	var b [1]byte
	if err := auth.Await(s, b[:], limit); err != nil {
		return err
	}
	if b[0] != goAhead {
		return auth.ErrProtocol
	}
	return nil
}

// claim decides about a dial from the other end of id: nil turns it away. What it
// returns expects the connection, and must be told of it by file.
func (n *Node) claim(id endID) (*end, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.ended(member{id.Comm, id.self}); err != nil {
		return nil, err
	}
	e := n.known(id)
	if e.committed && id.self == id.A {
		return nil, nil
	}
	e.coming++
	return e, nil
}

// file hands the connection that was claimed to its end, where an Open takes it; err
// is why there is none.
func (n *Node) file(id endID, e *end, conn *auth.Stream, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.coming--
	defer e.news()
	switch {
	case err != nil:
		if !e.opening && !e.expects() {
			n.drop(id, e)
		}
	case n.ends[id] != e: // forgotten, or opened by another connection meanwhile
		conn.Close()
	default:
		e.close() // its dialer has given that one up and dialed again
		e.conn = conn
		if take := n.take[id.Stream]; take != nil && !e.opening {
			n.wg.Go(func() { take(id.Key, id.self) }) // within serve, so that Close waits still
		}
	}
}
