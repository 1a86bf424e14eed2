package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/relay"
	"github.com/goccl/goccl/internal/simhost"
)

// Open returns self's end of the stream named key, whose other end is a rank of the
// process that listens at peer: the connection that the peer dialed, or one dialed
// from here, whichever comes first. It tries until ctx ends.
func (n *Node) Open(ctx context.Context, key Key, self uint32, peer netip.AddrPort) (*Conn, error) {
	return n.OpenUnless(ctx, key, self, peer, never, never)
}

// never is for a caller that hears nothing otherwise.
func never() bool { return false }

// OpenUnless is Open for a caller that may hear otherwise that the peer's Node has ended: once gone
// says so, the first refusal is the last. Once known says that the caller knows why the
// communicator has failed on the peer, so is the first answer that it has: ErrFailed. Each is asked
// after such an answer.
func (n *Node) OpenUnless(ctx context.Context, key Key, self uint32, peer netip.AddrPort, gone,
	known func() bool) (*Conn, error) {
	return n.openConn(ctx, key, self, peer, gone, known, n.wire)
}

// OpenNotices is OpenUnless, without known, for what the two ends agree on, which is authenticated
// wherever the job has a secret. Both ends of a stream choose alike.
func (n *Node) OpenNotices(ctx context.Context, key Key, self uint32, peer netip.AddrPort,
	gone func() bool) (*Conn, error) {
	wire := n.wire
	if wire == auth.Plain && n.secret.Keyed() {
		wire = auth.Auth
	}
	return n.openConn(ctx, key, self, peer, gone, never, wire)
}

// openConn is OpenUnless of a stream that travels as wire says.
func (n *Node) openConn(ctx context.Context, key Key, self uint32, peer netip.AddrPort, gone, known func() bool,
	wire auth.Wire) (*Conn, error) {
	s, err := n.open(ctx, key, self, peer, gone, known)
	if err != nil {
		return nil, err
	}
	c, err := takeConn(s, wire)
	if err != nil {
		return nil, fmt.Errorf("tcp: %v: %w", key, explain(err))
	}
	return c, nil
}

// takeConn makes a Conn of a stream.
func takeConn(s *auth.Stream, wire auth.Wire) (*Conn, error) {
	tc, out, in, err := s.Take(wire)
	if err != nil {
		s.Close()
		return nil, err
	}
	r, relayed := tc.(*relay.Conn)
	if relayed {
		tc = r.Conn
	}
	c, err := newConn(tc)
	if err == nil && relayed {
		c.pass(r.RemoteAddr())
	}
	if err == nil && out != nil {
		c.sealed = &sealed{out: out, in: in}
	}
	return c, err
}

// refusedFor is how long a Node may refuse connections before it counts as ended, where
// nobody says so: it listened before anybody knew its address.
const refusedFor = time.Second

// unreachedFor is how long there may be no way to a peer where Bear has not said: its host, or a router, may
// be about to come back.
const unreachedFor = 5 * time.Second

// Bear has the Node bear it for d that there is no way to a peer, 0: for as long as an Open may take. It is
// called before all Opens.
func (n *Node) Bear(d time.Duration) { n.out.bears = d }

// ErrRefused says that nobody listens any more where the peer's Node did.
var ErrRefused = errors.New("its process no longer listens")

// OpenControl is Open for the control plane: the stream as the handshake has left it, which blocks
// and has deadlines. Both ends of a stream choose alike.
func (n *Node) OpenControl(ctx context.Context, key Key, self uint32, peer netip.AddrPort) (*auth.Stream, error) {
	return n.open(ctx, key, self, peer, never, never)
}

func (n *Node) open(ctx context.Context, key Key, self uint32, peer netip.AddrPort, gone,
	known func() bool) (*auth.Stream, error) {
	id, err := key.end(self)
	if err != nil {
		return nil, err
	}
	if !peer.IsValid() || peer.Port() == 0 {
		return nil, fmt.Errorf("tcp: %v: rank %d has no address to dial: %v", key, id.peer().self, peer)
	}
	e, err := n.begin(id)
	if err != nil {
		return nil, err
	}
	s, err := n.connect(ctx, id, e, peer, gone, known)
	n.finish(id, e, err == nil)
	if err != nil {
		return nil, fmt.Errorf("tcp: %v: rank %d at %v: %w", key, id.peer().self, peer, err)
	}
	return s, nil
}

// connect is open of an end that has been begun.
func (n *Node) connect(ctx context.Context, id endID, e *end, peer netip.AddrPort, gone,
	known func() bool) (*auth.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()

	var last error               // why the last attempt failed
	noFiles := 0                 // attempts in a row that found too many files open
	var refused, unreached spell // of attempts that found nobody listening, and no way
	for attempt := 0; ; attempt++ {
		conn, expected, woken := n.await(ctx, e)
		if conn != nil {
			return conn, nil
		}
		if !expected {
			conn, err := n.dial(woken, id, e, peer)
			if err == nil {
				return conn, nil
			}
			switch ended := woken.Err() != nil || inet.IsTimeout(err); {
			case !ended:
				last = err
			case errors.Is(err, errSilent): // it was interrupted: by the end, perhaps, and nothing has ever come back
				last = cmp.Or(last, err)
			}
			if noFiles++; !outOfFiles(err) {
				noFiles = 0
			}
			ended := refused.lasts(errors.Is(err, syscall.ECONNREFUSED), refusedFor) || refused.over != nil && gone()
			if (ended || isLeft(err)) && n.offered(e) {
				continue // it had dialed before it closed: what it sent is there
			}
			if ended {
				return nil, ErrRefused
			}
			if inject.Wrong("tcp.unreached") {
				err = context.DeadlineExceeded
			}
			if t := inet.Of(err); unreached.lasts(inet.CutOff(err), n.out.bears) && n.out.bears > 0 || t != nil && t.Lasting {
				return nil, &Unmade{n.Addr().Addr(), peer, inet.Reason(err)}
			}
			if final(err) || noFiles == 8 || errors.Is(err, ErrFailed) && known() {
				return nil, explain(err)
			}
			// 1, 2, 4, ... 256 ms: a Node that is about to listen is found at once, and
			// one that takes its time is not flooded.
			lived.Sleep(woken, time.Millisecond<<min(attempt, 8))
		} else { // one is coming: for as long as it takes
			<-woken.Done()
		}
		if ctx.Err() != nil {
			return nil, n.gaveUp(ctx, peer, last)
		}
	}
}

// spell is a time in which each attempt has the same answer.
type spell struct{ over func() bool } // nil: there is none

// lasts notes whether an attempt has had that answer, and reports whether all have had it for longer than limit.
func (s *spell) lasts(is bool, limit time.Duration) bool {
	switch {
	case !is:
		s.over = nil
	case s.over == nil:
		s.over = lived.For(limit)
	default:
		return s.over()
	}
	return false
}

// Offered reports whether the peer's connection for self's end of a stream that nobody has
// opened here is in, or about to be.
func (n *Node) Offered(key Key, self uint32) bool {
	id, err := key.end(self)
	if err != nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.ends[id]
	return e != nil && e.expects()
}

// offered says whether the peer's connection is in, or about to be.
func (n *Node) offered(e *end) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.expects()
}

// begin marks the end as being opened.
func (n *Node) begin(id endID) (*end, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return nil, fmt.Errorf("tcp: %v: %w", id.Key, net.ErrClosed)
	}
	e := n.known(id)
	if e.opening {
		return nil, fmt.Errorf("tcp: %v: rank %d is opening it already", id.Key, id.self)
	}
	e.opening = true
	return e, nil
}

// finish ends the Open of an end. If it failed, a connection that the peer dialed
// meanwhile is for the next Open.
func (n *Node) finish(id endID, e *end, opened bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.news()
	e.wake, e.opening, e.committed = nil, false, false
	if opened || !e.expects() {
		n.drop(id, e)
	}
}

// await takes the connection that the peer dialed, if it is there. Else it says
// whether one is about to be, and returns a context that ends with ctx or when
// there is news of one.
func (n *Node) await(ctx context.Context, e *end) (conn *auth.Stream, expected bool, woken context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.wake != nil {
		e.wake() // of the last attempt
	}
	if e.conn != nil {
		conn, e.conn = e.conn, nil
		return conn, false, nil
	}
	woken, e.wake = context.WithCancel(ctx)
	return nil, e.coming > 0, woken
}

// commit says that this end's dial is to be the stream, unless the peer's is taken.
func (n *Node) commit(e *end) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.committed = !e.expects()
	return e.committed
}

// settle says whether the dial that the peer's Node took is to be the stream. It is not
// where the peer's was taken here: a dial of the higher rank that crossed the lower
// rank's may arrive after that one's Open is over and off the books.
func (n *Node) settle(id endID, e *end) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return id.self == id.A || !e.expects() || inject.Wrong("tcp.settle")
}

func (n *Node) withdraw(e *end) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.committed = false
}

// silentFor is how long a host may take to answer a dial: its first packet may be lost, and comes again after a second.
const silentFor = 1500 * time.Millisecond

// errSilent is for a peer's host that has not answered for longer.
var errSilent = errors.New("no answer: it is down, or a firewall drops what is sent to it")

var errCrossed = errors.New("both ends dialed, but the other's connection has not arrived")

// dial makes one attempt at the connection. It gives up when ctx ends.
func (n *Node) dial(ctx context.Context, id endID, e *end, peer netip.AddrPort) (*auth.Stream, error) {
	began := time.Now()
	conn, err := n.out.paths.Dial(simhost.With(ctx, simhost.Of(n.ctx)), "tcp", peer.String(), 0)
	if err != nil {
		if inet.Of(err) == nil && (inet.IsTimeout(err) || ctx.Err() != nil) && time.Since(began) > silentFor {
			err = relay.Because(err, errSilent)
		}
		return nil, err
	}
	// Until here nothing is decided, so that a rank whose dials get lost on the way
	// (a firewall that drops them) takes the peer's.
	if !n.commit(e) {
		conn.Close()
		return nil, errCrossed
	}
	s, reply, err := n.introduce(ctx, conn, id)
	switch {
	case err != nil:
	case string(reply) == taken && n.settle(id, e):
		if _, err = s.Write([]byte{goAhead}); err == nil {
			return s, nil
		}
	case string(reply) == taken, string(reply) == crossed:
		err = errCrossed
	default:
		err = fmt.Errorf("%w: its Node replied %q", auth.ErrProtocol, reply)
	}
	conn.Close()
	n.withdraw(e)
	return nil, err
}

// introduce runs the dialing side's handshake, which the end of ctx interrupts.
func (n *Node) introduce(ctx context.Context, conn net.Conn, id endID) (*auth.Stream, []byte, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	s, reply, err := auth.Client(conn, n.job, n.secret, id.hello())
	if r := (*auth.Refused)(nil); errors.As(err, &r) {
		for _, e := range []error{ErrGone, ErrDone, ErrQuit, ErrFailed} {
			if r.Text == e.Error() {
				err = e
			}
		}
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	return s, reply, err
}

// isLeft reports whether the peer has left the communicator, in whatever way.
func isLeft(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, ErrDone) || errors.Is(err, ErrQuit)
}

// final tells the errors that no later attempt can mend.
func final(err error) bool {
	var refused *auth.Refused
	return errors.Is(err, auth.ErrUnauthorized) || errors.Is(err, auth.ErrProtocol) ||
		errors.Is(err, auth.ErrVersion) || errors.Is(err, auth.ErrJob) || isLeft(err) ||
		errors.As(err, &refused)
}

// gaveUp says why an Open ended with its context: when, and what went wrong before.
func (n *Node) gaveUp(ctx context.Context, peer netip.AddrPort, last error) error {
	why := context.Cause(ctx)
	if n.ctx.Err() != nil {
		why = net.ErrClosed
	}
	err := fmt.Errorf("not connected: %w", why)
	if last != nil {
		err = fmt.Errorf("%w; the last attempt: %w", err, &Unmade{n.Addr().Addr(), peer, inet.Reason(explain(last))})
	}
	if t := n.trouble.Load(); t != nil {
		err = fmt.Errorf("%w; here: %w", err, *t)
	}
	return err
}

// Unmade is a connection that could not be made, from one address to another.
type Unmade struct {
	From netip.Addr
	To   netip.AddrPort
	Err  error
}

func (u *Unmade) Error() string {
	return fmt.Sprintf("%v does not reach %v: %v", u.From, u.To, u.Err)
}
func (u *Unmade) Unwrap() error { return u.Err }

func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// explain adds to an error of too many open files what the limit is and how to raise it.
func explain(err error) error {
	if !errors.Is(err, syscall.EMFILE) {
		return err
	}
	return fmt.Errorf("%w: %s", err, fileLimit())
}
