package auth

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// MaxStrangers is how many connections of a port may be in the handshake at once.
	MaxStrangers = 256
	// maxNeighbors is the same at a Unix socket, where the kernel turns away other users before the handshake.
	maxNeighbors = 4096
	// patience is what the oldest of them gets where more want in. A rank of the job needs milliseconds; one that
	// was dropped all the same dials again.
	patience = 100 * time.Millisecond
	// briefly is what the oldest gets before more than few are let in: see Strangers.Few.
	briefly = 50 * time.Millisecond
	// refusedFor is how long a connection that did not know the secret keeps its place. So a guess costs a place for
	// a second, or for patience where places are scarce: a port takes 2,560 guesses a second at most.
	refusedFor = time.Second
	// tellEvery is how often a port logs that it has refused secrets.
	tellEvery = time.Minute
)

// Strangers are the connections that a port has accepted and that have not proved yet that they
// belong to the job. Their number is bounded, by the descriptors that the process may have as well:
// where it is reached the oldest goes, once it has had its patience. Each port of a job, and each
// socket of its bootstrap, has its Strangers, and no connection begins the handshake without a
// place among them.
type Strangers struct {
	port     string // for the log
	max      int
	few      int // 0: max
	patience time.Duration
	warn     func(msg string, args ...any)

	closed chan struct{}
	freed  chan struct{} // a place is free

	mu      sync.Mutex
	list    list.List // of *Stranger, oldest first
	refused refusals
}

// refusals are the connections that did not know the secret.
type refusals struct {
	all    int
	untold int // since the last line of the log
	last   string
	timer  *time.Timer // nil: the next is told at once
}

// Stranger is one connection, and its place.
type Stranger struct {
	conn    net.Conn
	of      *Strangers
	since   time.Time
	place   *list.Element
	dropped chan struct{} // it has lost its place to another
}

// NewStrangers makes the Strangers of a port.
func NewStrangers(port net.Addr) *Strangers {
	most := MaxStrangers
	if port.Network() == "unix" {
		most = maxNeighbors
	}
	_, name := parts(port)
	return newStrangers(name, min(most, max(descriptors()/4, 4)), patience, slog.Warn)
}

// parts are the host and the port of an address; the name of a Unix socket stands for its port.
func parts(a net.Addr) (host, port string) {
	if a == nil {
		return "", ""
	}
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return "", a.String()
	}
	return host, port
}

func newStrangers(port string, max int, patience time.Duration, warn func(string, ...any)) *Strangers {
	return &Strangers{port: port, max: max, patience: patience, warn: warn, closed: make(chan struct{}),
		freed: make(chan struct{}, 1)}
}

// Few lets in at most n at once, until one of them is slow: where thousands of a job's own come at
// once, they wait for each other in the kernel, which takes no descriptors. Call it before Admit.
func (s *Strangers) Few(n int) { s.few = min(n, s.max) }

// Admit takes conn in, if need be once there is room. It is called by one goroutine at a time. It returns nil, and has
// closed conn, once s is closed.
func (s *Strangers) Admit(conn net.Conn) *Stranger {
	for {
		s.mu.Lock()
		wait := time.Duration(0)
		if n := s.list.Len(); n >= s.max {
			if wait = s.patience - s.age(); wait <= 0 {
				s.drop()
			}
		} else if s.few > 0 && n >= s.few {
			wait = briefly - s.age()
		}
		if s.isClosed() {
			s.mu.Unlock()
			conn.Close()
			return nil
		}
		if wait <= 0 {
			n := &Stranger{conn: conn, of: s, since: time.Now(), dropped: make(chan struct{})}
			n.place = s.list.PushBack(n)
			s.mu.Unlock()
			return n
		}
		s.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.freed:
		case <-s.closed:
		}
		timer.Stop()
	}
}

// age is how long the oldest has been here. s.mu is held, and there is one.
func (s *Strangers) age() time.Duration {
	return time.Since(s.list.Front().Value.(*Stranger).since)
}

// MakeRoom drops the oldest connection, where the process has no descriptors left.
func (s *Strangers) MakeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// drop ends the oldest connection, whose handshake fails. s.mu is held.
func (s *Strangers) drop() {
	if e := s.list.Front(); e != nil {
		oldest := s.list.Remove(e).(*Stranger)
		oldest.conn.Close()
		close(oldest.dropped)
	}
}

// Leave gives the place back: the connection is known now, or closed. It is false if the connection
// has left before, or was dropped.
func (n *Stranger) Leave() bool {
	s := n.of
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.list.Len()
	s.list.Remove(n.place) // if it is there
	if s.list.Len() == before {
		return false
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
	return true
}

// Judge is Leave after a handshake that has ended with err. Where the other end did not know the
// secret, that is counted, the connection is closed, and its place is free only after a while.
func (n *Stranger) Judge(err error) {
	defer n.Leave()
	if !errors.Is(err, ErrUnauthorized) {
		return
	}
	host, _ := parts(n.conn.RemoteAddr()) // its port is free again soon
	n.of.refuse(host)
	n.conn.Close()
	timer := time.NewTimer(refusedFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.dropped:
	case <-n.of.closed:
	}
}

// refuse counts a connection that did not know the secret, and tells of it: at once if none was
// told of for a minute, else once that is over.
func (s *Strangers) refuse(host string) {
	s.mu.Lock()
	r := &s.refused
	r.all++
	r.untold++
	r.last = host
	if r.timer != nil {
		s.mu.Unlock()
		return
	}
	s.tell()
}

// tell tells of what is untold, and sees to the next line. s.mu is held when it is called, but not
// while the log takes its time.
func (s *Strangers) tell() {
	r := &s.refused
	n, last := r.untold, r.last
	r.untold, r.timer = 0, nil
	if n > 0 && !s.isClosed() {
		r.timer = time.AfterFunc(tellEvery, func() {
			s.mu.Lock()
			s.tell()
		})
	}
	s.mu.Unlock()
	if n > 0 {
		s.warn("goccl: wrong secret refused", "count", n, "last", last, "port", s.port)
	}
}

// Refused is how many connections did not know the secret.
func (s *Strangers) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused.all
}

// Len is how many are in the handshake.
func (s *Strangers) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.Len()
}

// Close ends the connections that are in the handshake. No more are admitted.
func (s *Strangers) Close() {
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return
	}
	close(s.closed)
	for s.list.Len() > 0 {
		s.drop()
	}
	if t := s.refused.timer; t != nil {
		t.Stop()
	}
	s.tell()
}

func (s *Strangers) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}
