package boot

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/relay"
)

const (
	nameLimit    = 5 * time.Second        // after which a host without an address is told of
	dialLimit    = 3 * time.Second        // for one connection, at one address
	leastDial    = 100 * time.Millisecond // for one, however short the limit of all
	dialStagger  = 100 * time.Millisecond // before the next address is tried beside one that is silent
	firstBackoff = 2 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// point is where rank 0 may be found.
type point struct {
	network string   // tcp or unix
	addrs   []string // the likeliest first; it listens at one of them
	secret  auth.Secret
	who     join // who was found there
	final   bool // a host without an address gets none while the job starts, as it may in Kubernetes
}

// dialer finds rank 0.
type dialer struct {
	job   string
	self  join
	find  func() (point, error) // asked again for each try: what is written in a file may be old
	fixed bool                  // the user gave the address: a refusal there is final
	limit time.Duration         // after which it gives up where no connection was made; 0: when ctx ends
	door  openDoor              // of a host's relay
	paths relay.Paths           // to rank 0
	named time.Duration         // for which rank 0's host may have no address before this rank says so

	made     atomic.Bool            // a connection was
	astray   atomic.Bool            // the relay to which rank 0 sent this rank was not reached
	stranger atomic.Pointer[string] // an address that takes connections, but does not answer as goccl
	unnamed  sync.Once              // rank 0's host has no address: see named
	untold   sync.Once              // a peer answered whose process the kernel does not tell
}

// dial tries all addresses that rank 0 may have, again and again, until rank 0 answers at one or ctx
// ends.
func (f *dialer) dial(ctx context.Context) (*auth.Stream, point, error) {
	began := time.Now()
	reach, end := ctx, context.CancelFunc(func() {})
	if f.limit > 0 {
		reach, end = lived.Within(ctx, f.limit)
	}
	defer end()
	naming, end := lived.Within(ctx, f.named)
	defer end()
	var place string
	last := errors.New("no attempt was made")
	for wait := firstBackoff; ; wait = min(wait*3/2, maxBackoff) {
		p, err := f.find()
		if err == nil {
			place = p.addrs[0]
			r := f.sweep(ctx, p)
			if err = r.err; err == nil {
				p.who = r.who
				return r.conn, p, nil
			}
			if errors.Is(err, auth.ErrCipher) {
				return nil, p, err
			}
			if code := f.verdict(err); code != 0 {
				return nil, p, fault(code, "rank 0 at %s turned this rank away: %v", place, err)
			}
			if t := inet.Of(err); t != nil && t.Lasting {
				return nil, p, fault(System, "rank 0 at %s cannot be reached: %v", place, t).by(f.self.Rank)
			}
		}
		// What the deadline cut off says nothing of why; connections have it to the nanosecond, ctx a little later.
		if until, ok := ctx.Deadline(); telling(err) == 3 || ctx.Err() == nil && !(ok && time.Now().After(until)) {
			last = err
		}
		if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) && unknown.IsNotFound && naming.Err() != nil &&
			ctx.Err() == nil {
			none := f.notFound(place, time.Since(began), err)
			if p.final {
				return nil, p, none
			}
			f.unnamed.Do(func() { slog.Warn("goccl: so far " + none.Text) })
		}
		if f.limit > 0 && !f.made.Load() && reach.Err() != nil {
			return nil, p, f.notFound(place, time.Since(began), last)
		}
		// The jitter keeps a thousand hosts from knocking all at once.
		if !pause(ctx, wait/2+rand.N(wait)) {
			return nil, p, f.unreachable(ctx, place, time.Since(began), last)
		}
	}
}

// pause waits for d, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool { return lived.Sleep(ctx, d) }

// verdict is the code of an error after which it makes no sense to try again; else 0.
func (f *dialer) verdict(err error) Code {
	var no *auth.Refused
	switch {
	case errors.As(err, &no):
		return Mismatch
	case f.fixed && errors.Is(err, auth.ErrUnauthorized):
		return Unauthorized
	case f.fixed && errors.Is(err, auth.ErrVersion):
		return Version
	}
	return 0
}

func (f *dialer) unreachable(ctx context.Context, place string, after time.Duration, last error) *Error {
	if ctx.Err() != context.DeadlineExceeded {
		return ended(ctx.Err(), "canceled while looking for rank 0")
	}
	return f.notFound(place, after, last)
}

// notFound is the error after that time, in which rank 0 was not found. Missing is rank 0 alone.
func (f *dialer) notFound(place string, after time.Duration, last error) *Error {
	place = cmp.Or(place, "its host")
	var away *detour
	if errors.As(last, &away) {
		var op *net.OpError
		why := away.err
		if errors.As(why, &op) {
			why = op.Err
		}
		return fault(Timeout, "rank %d (%v), through which this rank is to reach rank 0, was not reached at %v within %v: %v. Can the hosts of the job connect with each other?",
			away.to.Rank, away.to, away.to.Addr, after.Round(time.Millisecond), why).by(away.to.Rank)
	}
	if t := inet.Of(last); t != nil {
		return fault(Timeout, "rank 0 was not looked for at %s within %v: %v", place, after.Round(time.Millisecond),
			t).by(f.self.Rank)
	}
	var unknown *net.DNSError
	foreign := f.stranger.Load()
	advice := "Is it running, and is its port open?"
	switch {
	case refusedHere(last):
		advice = "The address is this host's own: is it running here?"
	case errors.Is(last, auth.ErrUntold):
		advice = "A secret tells ranks from strangers, whatever containers they are in"
	case errors.As(last, &unknown):
		advice = "If host names do not resolve, set GOCCL_ROOT=ADDRESS:PORT on all ranks, with an address of rank 0's host (under Slurm, NodeAddr in scontrol show node), or GOCCL_STORE=/dir, a directory that all hosts share"
	case foreign != nil && telling(last) < 2 && !errors.Is(last, auth.ErrJob):
		advice = "A service other than goccl accepts connections at " + *foreign + ": choose another port"
	}
	var op *net.OpError
	if errors.As(last, &op) { // the rest of its text is said already
		last = op.Err
	}
	e := fault(Timeout, "rank 0 was not found at %s within %v: %v. %s",
		place, after.Round(time.Millisecond), last, advice)
	e.Peer, e.Missing = 0, []int{0}
	return e
}

// refusedHere reports whether this host itself has refused the connection.
func refusedHere(err error) bool {
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Addr == nil {
		return false
	}
	at, err := netip.ParseAddrPort(op.Addr.String())
	return err == nil && inet.LeadsHere(nil, at.Addr())
}

// found is what came of one address.
type found struct {
	conn *auth.Stream
	who  join
	made bool // the connection, whatever came of it
	err  error
}

// sweep tries all addresses of p: each as soon as the one before has failed, or
// has been silent for a while.
func (f *dialer) sweep(ctx context.Context, p point) found {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan found)
	started, ended := 0, 0
	start := func() {
		addr := p.addrs[started]
		started++
		go func() { results <- f.try(ctx, p, addr) }()
	}
	start()
	timer := time.NewTimer(dialStagger)
	defer timer.Stop()
	var winner found
	for ended < started {
		select {
		case r := <-results:
			ended++
			switch {
			case r.err == nil && winner.conn == nil:
				winner = r
				cancel() // and wait for the others to end
			case r.err == nil:
				r.conn.Close()
			case winner.conn == nil && telling(r.err) >= telling(winner.err):
				winner.err = r.err
			}
			if winner.conn == nil && ended == started && started < len(p.addrs) {
				start()
			}
		case <-timer.C:
			if winner.conn == nil && started < len(p.addrs) {
				start()
				timer.Reset(dialStagger)
			}
		}
	}
	return winner
}

// telling ranks errors by how much they say about why rank 0 was not found.
func telling(err error) int {
	var away *detour
	switch {
	case err == nil:
		return -2
	case inet.Of(err) != nil && inet.Of(err).Lasting: // it may hold for this address alone
		return -1
	case errors.As(err, &away):
		return 3
	case errors.Is(err, auth.ErrVersion), errors.Is(err, auth.ErrUnauthorized), errors.Is(err, auth.ErrUntold):
		return 2
	case errors.Is(err, auth.ErrJob), errors.Is(err, auth.ErrProtocol), errors.Is(err, auth.ErrUser):
		return 1
	}
	return 0
}

// foreignTo reports whether err is that of a connection to something that does not answer as goccl, or not at all.
func foreignTo(err error) bool {
	var ran net.Error
	return errors.Is(err, auth.ErrProtocol) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &ran) && ran.Timeout()
}

// try connects to one address and proves who is who. Where rank 0 sends this process on, it goes there.
func (f *dialer) try(ctx context.Context, p point, addr string) found {
	r := f.reach(ctx, p.network, addr, p.secret)
	if p.network == "tcp" && r.made && foreignTo(r.err) {
		f.stranger.Store(&addr)
	}
	for hops := 0; r.err == nil && r.who.To != nil; hops++ {
		to := *r.who.To
		r.conn.Close()
		if r = f.reach(ctx, "tcp", to.Addr.String(), p.secret); r.err == nil && r.who.To != nil && hops >= maxHops {
			r.conn.Close()
			r.err = errHops
		}
		if r.err != nil {
			f.astray.Store(true)
			return found{err: &detour{to, r.err}}
		}
	}
	return r
}

// reach connects to one address.
func (f *dialer) reach(ctx context.Context, network, addr string, secret auth.Secret) found {
	limit := dialLimit
	if f.limit > 0 && !f.made.Load() {
		limit = min(limit, max(f.limit, leastDial))
	}
	conn, err := f.paths.Dial(ctx, network, addr, limit)
	if err != nil {
		return found{err: err}
	}
	_, relayed := conn.(*relay.Conn)
	if network == "tcp" {
		f.made.Store(true)
	}
	hello := f.self
	if f.door != nil && network == "tcp" && !relayed { // else others would be sent to the relay
		hello.Door, hello.Astray = f.door(ctx, conn.LocalAddr(), secret), f.astray.Load()
	}
	s, reply, err := shake(ctx, conn, f.job, secret, hello.encode())
	if err != nil {
		if errors.Is(err, auth.ErrUntold) { // a rank, perhaps, which waits for this one until its timeout
			f.untold.Do(func() {
				slog.Warn("goccl: a process at the socket of this job is not taken for a rank: " + err.Error())
			})
		}
		return found{made: true, err: err}
	}
	who, err := parseJoin(reply)
	if err != nil {
		conn.Close()
		return found{made: true, err: err}
	}
	return found{conn: s, who: who, made: true}
}

// shake is the client's handshake on conn, which it closes where that fails. reply is what the server says to hello.
func shake(ctx context.Context, conn net.Conn, job string, secret auth.Secret,
	hello []byte) (s *auth.Stream, reply []byte, err error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn.SetDeadline(time.Now().Add(handshakeLimit))
	if err = cmp.Or(auth.SameUser(conn, secret), ctx.Err()); err == nil { // ctx may have ended before the line above
		s, reply, err = auth.Client(conn, job, secret, hello)
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return s, reply, nil
}

// selfJoin is how this process introduces itself.
func selfJoin(rank, size int) join {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return join{Protocol: protocol, Rank: rank, Size: size, PID: os.Getpid(), Host: host}
}
