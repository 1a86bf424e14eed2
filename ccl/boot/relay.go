package boot

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/relay"
)

// Relay passes bytes between processes of a job that cannot connect with each other. Both connect with the relay, as
// GOCCL_RELAY tells them. They use it only where a direct connection has failed, and what they send through it is
// encrypted with the job's secret.
type Relay struct {
	acceptor
	addr string
	most int
	log  *slog.Logger
	pace pacer

	mu     sync.Mutex
	piers  map[netip.AddrPort]*pier
	parked int // connections that wait to be joined
	pairs  int // connections that are joined, or about to be, with one that was parked
}

// RelayOptions bound a [Relay].
type RelayOptions struct {
	// Connections is how many connections the relay joins at most at a time, and how many others may wait. Two
	// processes have up to 10 between them. Each listener keeps two waiting while there is room, and one where there
	// is not: so it is the most listeners, too. One that is joined costs 128 KiB and two descriptors. 0 stands for 512.
	Connections int
	// Rate is how many bytes a second pass at most, all connections together. 0 is no limit.
	Rate int64
	// Log hears of each connection that has ended, how much it passed. nil stands for slog.Default().
	Log *slog.Logger
}

const (
	mostRelayed = 512
	mostBerths  = 4               // parked connections of one listener
	berthWait   = 5 * time.Second // for a listener to park another connection
	relayBuffer = 64 << 10        // bytes of one direction under way
)

// parkedAlive has a connection that waits end 5 s after its host was last heard of, as ccl's default PeerTimeout has
// a rank: else the name of a host that was lost would be taken for minutes. joinedAlive is for one that is joined: the
// processes at both ends know how long each may be silent.
var (
	parkedAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}
	joinedAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 9}
)

func keepAlive(conn net.Conn, how net.KeepAliveConfig) {
	if c, ok := conn.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}); ok {
		c.SetKeepAliveConfig(how)
	}
}

// RelayKey is what ListenRelay needs of the job's secret, which does not follow from it. So a machine that is given
// the key alone relays, and can neither read what passes nor join the job. Hex digits of the secret stand for their
// bytes; nil takes that of the environment. It is an error if there is none.
func RelayKey(secret []byte) ([]byte, error) {
	key, err := relayKey(secret)
	return key.Bytes(), err
}

func relayKey(secret []byte) (auth.Secret, error) {
	s, err := auth.Settle(secret, os.Environ())
	if err == nil && !s.Known() {
		err = fmt.Errorf("a relay takes those alone that know the job's secret, but %w", auth.ErrRequired)
	}
	if err == nil {
		err = auth.Usable()
	}
	if err != nil {
		return auth.Secret{}, secretFault(err)
	}
	return relay.Key(s), nil
}

// ListenRelay returns a Relay that listens at addr, host:port; port 0 takes a free one, of GOCCL_PORTS where that is
// set. key is that of [RelayKey]; nil takes that of the environment's secret. o may be nil.
func ListenRelay(addr string, key []byte, o *RelayOptions) (*Relay, error) {
	l, err := inet.Listen(addr)
	if err != nil {
		return nil, cannotListen(err, "the relay cannot listen at %s", addr)
	}
	r, err := ServeRelay(l, key, o)
	if err != nil {
		l.Close()
	}
	return r, err
}

// ServeRelay is [ListenRelay] at a listener, which the Relay closes.
func ServeRelay(l net.Listener, key []byte, o *RelayOptions) (*Relay, error) {
	by := auth.Given(key)
	if key == nil {
		var err error
		if by, err = relayKey(nil); err != nil {
			return nil, err
		}
	}
	if o == nil {
		o = &RelayOptions{}
	}
	if len(by.Bytes()) < 16 || o.Connections < 0 || o.Rate < 0 {
		return nil, fault(Argument, "a relay with a key of %d bytes, %d connections and %d bytes a second: the key is RelayKey's, and no bound is negative",
			len(by.Bytes()), o.Connections, o.Rate)
	}
	r := &Relay{acceptor: newAcceptor(0), addr: l.Addr().String(), most: o.Connections, log: o.Log,
		pace: pacer{rate: o.Rate}, piers: map[netip.AddrPort]*pier{}}
	if r.most == 0 {
		r.most = mostRelayed
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.listen(l, by, r.greet)
	return r, nil
}

// Addr returns where r listens, as host:port.
func (r *Relay) Addr() string { return r.addr }

// Close ends r, and all connections through it.
func (r *Relay) Close() error {
	r.close()
	return nil
}

// pier is where a listener's connections are parked.
type pier struct {
	id    [16]byte
	free  []*berth
	waits int           // connections of the listener that are parked, or about to be
	uses  int           // all of them, joined ones too
	news  chan struct{} // closed, and made anew, when one is parked
}

// berth is a connection of a listener that is parked.
type berth struct {
	claim func() (listener net.Conn, s *auth.Stream, there bool) // is called once, by the process that dialed
	over  chan struct{}                                          // closed by the claimer, at the end
}

// greet is the handshake with a connection, and then what it asks for.
func (r *Relay) greet(conn net.Conn, d *door, stranger *auth.Stranger) {
	defer r.forget(conn)
	conn.SetDeadline(time.Now().Add(handshakeLimit))
	var q relay.Request
	counted, claimed := false, false
	s, _, err := auth.Server(conn, relay.Job, d.secret, func(hello []byte) ([]byte, error) {
		var err error
		if q, err = relay.Parse(hello); err != nil {
			return nil, err
		}
		if !stranger.Leave() { // what is let in must not be dropped to make room
			return nil, net.ErrClosed
		}
		err = r.enter(q)
		counted = err == nil
		return nil, err
	})
	stranger.Judge(err)
	if counted {
		defer func() { r.leave(q, claimed) }()
	}
	if err != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	if q.Kind == relay.Listen {
		keepAlive(conn, parkedAlive)
		claimed = r.park(conn, s, q)
		return
	}
	r.join(conn, s, q)
}

// enter counts a connection that asks for q, if there is room for it.
func (r *Relay) enter(q relay.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.piers[q.Name]
	switch {
	case q.Kind == relay.Dial && p == nil:
		return fmt.Errorf("nobody listens at %v", q.Name)
	case q.Kind == relay.Dial && r.pairs >= r.most:
		return fmt.Errorf("it joins %d connections at most, by RelayOptions.Connections", r.most)
	case q.Kind == relay.Dial:
		r.pairs++
		return nil
	case p != nil && p.id != q.ID && p.waits > 0:
		return fmt.Errorf("another process listens at %v: where two have one address, give them other ports, by GOCCL_PORTS", q.Name)
	case p != nil && len(p.free) >= mostBerths:
		return fmt.Errorf("%v has %d connections that wait", q.Name, mostBerths)
	case r.parked >= r.most && p != nil && len(p.free) > 0:
		return fmt.Errorf("%d connections wait at most, by RelayOptions.Connections, and %v has one of them", r.most, q.Name)
	case r.parked >= r.most && r.spare() == nil:
		return fmt.Errorf("%d listeners wait at most, by RelayOptions.Connections", r.most)
	case p == nil:
		p = &pier{news: make(chan struct{})}
		r.piers[q.Name] = p
	}
	p.id = q.ID // another process may come back to the name once nothing of the one before waits
	p.waits++
	p.uses++
	return nil
}

// spare is the listener with the most parked connections of those that have more than one, nil if there is none. r.mu
// is held.
func (r *Relay) spare() (most *pier) {
	for _, p := range r.piers {
		if len(p.free) > 1 && (most == nil || len(p.free) > len(most.free)) {
			most = p
		}
	}
	return most
}

// take takes the connection of p that was parked first, for the caller to claim. r.mu is held.
func (r *Relay) take(p *pier) *berth {
	b := p.free[0]
	p.free = p.free[1:]
	p.waits--
	r.parked--
	return b
}

// leave is the end of a connection that was counted.
func (r *Relay) leave(q relay.Request, claimed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Kind == relay.Dial {
		r.pairs--
		return
	}
	p := r.piers[q.Name]
	if !claimed {
		p.waits--
	}
	if p.uses--; p.uses == 0 {
		delete(r.piers, q.Name)
	}
}

// park has a listener's connection wait until somebody claims it, and then for the end of that. It returns whether
// anybody has.
func (r *Relay) park(conn net.Conn, s *auth.Stream, q relay.Request) (claimed bool) {
	ended, taken := make(chan error, 1), make(chan struct{})
	go func() { // the listener says nothing before it has been joined: so this is its end, or that of the wait
		var b [1]byte
		_, err := conn.Read(b[:])
		ended <- err
	}()
	b := &berth{over: make(chan struct{})}
	b.claim = func() (net.Conn, *auth.Stream, bool) {
		close(taken)
		conn.SetReadDeadline(time.Unix(1, 0))
		err := <-ended
		keepAlive(conn, joinedAlive)
		return conn, s, errors.Is(err, os.ErrDeadlineExceeded) && conn.SetReadDeadline(time.Time{}) == nil
	}
	r.mu.Lock()
	p := r.piers[q.Name]
	var gives *berth // its place
	if r.parked >= r.most {
		from := r.spare()
		if from == nil || len(p.free) > 0 { // others were as fast
			r.mu.Unlock()
			return false
		}
		gives = r.take(from)
	}
	r.parked++
	p.free = append(p.free, b)
	close(p.news)
	p.news = make(chan struct{})
	r.mu.Unlock()
	if gives != nil {
		gives.claim()
		close(gives.over)
	}
	select {
	case <-taken:
	case err := <-ended:
		ended <- err
		if r.unpark(p, b) {
			return false
		}
		<-taken
	}
	<-b.over
	return true
}

// unpark takes b out of those that can be claimed. It returns false if b has been claimed.
func (r *Relay) unpark(p *pier, b *berth) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, o := range p.free {
		if o == b {
			p.free = append(p.free[:i], p.free[i+1:]...)
			r.parked--
			return true
		}
	}
	return false
}

// free is a parked connection at name, for which it waits a while.
func (r *Relay) free(name netip.AddrPort) *berth {
	over := time.NewTimer(berthWait)
	defer over.Stop()
	for {
		r.mu.Lock()
		p := r.piers[name]
		if p == nil {
			r.mu.Unlock()
			return nil
		}
		if len(p.free) > 0 {
			b := r.take(p)
			r.mu.Unlock()
			return b
		}
		news := p.news
		r.mu.Unlock()
		select {
		case <-news:
		case <-over.C:
			return nil
		case <-r.done:
			return nil
		}
	}
}

// join joins conn with a connection that is parked, until both have ended.
func (r *Relay) join(conn net.Conn, s *auth.Stream, q relay.Request) {
	for b := r.free(q.Name); b != nil; b = r.free(q.Name) {
		there, ts, ok := b.claim()
		if ok {
			_, err := ts.Write([]byte{relay.Go})
			ok = err == nil
		}
		if !ok {
			close(b.over)
			continue
		}
		defer close(b.over)
		if _, err := s.Write([]byte{relay.Go}); err != nil {
			return
		}
		up, down := r.splice(conn, there)
		r.log.Info("goccl: a relayed connection has ended", "dialed", q.Name.String(), "by", conn.RemoteAddr().String(),
			"sent", up, "received", down)
		return
	}
}

// splice copies bytes between a and b until both directions have ended, and returns how many.
func (r *Relay) splice(a, b net.Conn) (up, down int64) {
	var both sync.WaitGroup
	both.Go(func() { up = r.copy(b, a) })
	both.Go(func() { down = r.copy(a, b) })
	both.Wait()
	return up, down
}

// copy moves what src sends to dst. Where src has ended so does what dst hears; where either has broken, both do.
func (r *Relay) copy(dst, src net.Conn) (n int64) {
	buf := make([]byte, relayBuffer)
	for {
		k, err := src.Read(buf)
		if k > 0 {
			if !r.pace.wait(k, r.done) {
				err = net.ErrClosed
			} else if _, failed := dst.Write(buf[:k]); failed != nil {
				err = failed
			} else {
				n += int64(k)
			}
		}
		if half, ok := dst.(interface{ CloseWrite() error }); errors.Is(err, io.EOF) && ok && half.CloseWrite() == nil {
			return n
		}
		if err != nil {
			abort(dst)
			abort(src)
			return n
		}
	}
}

// abort resets conn, so that the other end takes what it has heard for no orderly end.
func abort(conn net.Conn) {
	if l, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		l.SetLinger(0)
	}
	conn.Close()
}

// pacer holds bytes back so that no more than rate pass in a second.
type pacer struct {
	rate int64 // 0: as many as there are
	mu   sync.Mutex
	next time.Time // when the next byte may pass
}

// wait waits until n bytes may pass. It returns false once done is closed.
func (p *pacer) wait(n int, done <-chan struct{}) bool {
	if p.rate == 0 {
		return true
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	d := p.next.Sub(now)
	p.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
