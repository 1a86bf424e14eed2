package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/simhost"
)

// joinConfig has what a rank needs to join the others.
type joinConfig struct {
	job        string
	rank, size int
	secret     auth.Secret // zero where it is made at the meeting: see made
	hostID     string
	limit      time.Duration
	reach      time.Duration // see dialer

	find  func() (point, error) // where rank 0 is
	fixed bool                  // see dialer
	// rank 0: its listener, and the secret that others need
	listen func(context.Context) (net.Listener, auth.Secret, error)
	direct bool // all ranks are on one host: rank 0 serves them itself
	// else names the socket where the ranks of a host meet; "": each goes its own way
	host   string
	absent absence // rank 0: of ranks that do not come
	made   bool    // a secret is made at the meeting
	met    func()  // rank 0: the joining is over
}

// join joins the job: rank 0 as root server, the first rank of a host as its relay, the other ranks
// through that relay.
func (m *joinConfig) join(ctx context.Context) (*Boot, error) {
	if m.size == 1 {
		return alone(m.secret, m.hostID), nil
	}
	ctx, cancel := limited(ctx, m.limit)
	defer cancel()
	b := &Boot{rank: m.rank, size: m.size, limit: m.limit, secret: m.secret, hostID: m.hostID}
	var err error
	switch {
	case ctx.Err() != nil:
		err = ended(ctx.Err(), "the context ended before joining began")
	case m.secret.IsZero() && !m.made:
		err = errors.New("the job's secret was not settled")
	case m.secret.Keyed() && auth.Usable() != nil:
		err = auth.Usable()
	case m.rank == 0:
		err = m.serve(ctx, b)
	default:
		err = m.enter(ctx, b)
	}
	if err != nil {
		b.Close()
		return nil, asError(err).of(m.rank, m.size)
	}
	return b, nil
}

// serve is join on rank 0.
func (m *joinConfig) serve(ctx context.Context, b *Boot) error {
	l, secret, err := m.listen(ctx)
	if err != nil {
		return err
	}
	if secret.Keyed() { // found only now, perhaps
		if err := auth.Usable(); err != nil {
			l.Close()
			return err
		}
	}
	b.secret = secret
	if l.Addr().Network() == "unix" && !secret.Keyed() {
		// The kernel tells the user of each peer, so the secret can be given to all peers of this user.
		b.secret = auth.Given(auth.NewSecret())
	}
	h := newRootServer(selfJoin(0, m.size), m.job)
	h.absent, h.give = m.absent, b.secret.Bytes()
	for _, t := range []*term{&h.deadline, &h.leave, &h.held.own, &h.held.late} {
		t.of = simhost.Of(ctx)
	}
	b.server = h
	b.use(h.start(l, secret), h.self)
	_, err = b.announce(ctx)
	if m.met != nil {
		m.met()
	}
	return err
}

// enter is join on the other ranks.
func (m *joinConfig) enter(ctx context.Context, b *Boot) error {
	f := &dialer{job: m.job, self: selfJoin(m.rank, m.size), find: m.find, fixed: m.fixed, limit: m.reach,
		named: nameLimit}
	if err := m.connect(ctx, b, f); err != nil {
		return err
	}
	again, first := b.announce(ctx)
	// Rank 0 knows more, if it is still there.
	ctx, cancel := context.WithTimeout(ctx, lateLimit)
	defer cancel()
	for err := first; again && err != nil; {
		b.hangUp()
		if m.connect(ctx, b, f) != nil {
			return first
		}
		if again, err = b.announce(ctx); !again {
			return err
		}
		if !pause(ctx, firstBackoff) {
			return first
		}
	}
	return first
}

// connect connects b to the server of this rank: rank 0, this host's relay, or this process itself.
func (m *joinConfig) connect(ctx context.Context, b *Boot, f *dialer) error {
	if m.direct {
		conn, p, err := f.dial(ctx)
		if err == nil {
			b.use(conn, p.who)
		}
		return err
	}
	r, l, err := m.meet(ctx, f)
	if err != nil {
		return err
	}
	if r.conn != nil {
		b.use(r.conn, r.who)
		return nil
	}
	relay, conn := startHostRelay(ctx, f.self, m.job, m.onHost(), l,
		func(ctx context.Context, door openDoor) (*auth.Stream, point, error) {
			f.door = door
			return f.dial(ctx)
		})
	b.server = relay
	b.use(conn, f.self)
	return nil
}

const (
	// meetLimit is how long a rank tries to meet those of its host where one that ends, or another user, has the name of
	// their socket and does not serve there.
	meetLimit  = time.Second
	maxMeeting = 50 * time.Millisecond // between two tries
)

// meet finds the rank that serves this host, or returns the listener by which this one is to do so.
// It returns neither where this rank has to go its own way.
func (m *joinConfig) meet(ctx context.Context, f *dialer) (found, net.Listener, error) {
	if m.host == "" {
		return found{}, nil, nil
	}
	over := time.Now().Add(meetLimit)
	for wait := firstBackoff; ; wait = min(wait*3/2, maxMeeting) {
		l, err := inet.ListenLocal(simhost.Of(ctx), m.host)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return found{}, l, nil // serving, or unable to: then for itself alone
		}
		r := f.try(ctx, point{network: "unix", secret: m.onHost()}, m.host)
		switch {
		case r.err == nil:
			return r, nil, nil
		case ctx.Err() != nil:
			return found{}, nil, ended(ctx.Err(), "the context ended while this rank looked for the others on its host")
		case !isEnding(r.err) || time.Now().After(over):
			return found{}, nil, nil // a stranger has the name, or one whose secret differs: rank 0 will say
		}
		pause(ctx, wait)
	}
}

// isEnding reports whether the other end of a socket on this host was just about
// to go, so that the next try finds another, or none.
func isEnding(err error) bool {
	endings := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE}
	return slices.ContainsFunc(endings, func(e error) bool { return errors.Is(err, e) })
}

// localName names an abstract socket that stands for what, for this user alone.
func localName(what ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q", os.Geteuid(), what))
	return "@goccl-" + hex.EncodeToString(sum[:16])
}

// hostSocket names the socket where the ranks of this host meet on their way to root.
func hostSocket(job, root, hostID string) string {
	if !meetLocally {
		return ""
	}
	return localName("host", job, root, hostID)
}

// here is the meeting of a job on one host: at a socket that never leaves it. Anybody on the host
// can tell its names, and take them first; then the ranks meet where only their user can make a
// file.
func (m *joinConfig) here(getenv func(string) string, what ...string) {
	names := make([]string, tries)
	for i := range names {
		names[i] = localName(append(what, m.job, fmt.Sprint(i))...)
	}
	host, _ := os.Hostname() // homes may be shared
	private := privatePlaces{name: "." + localName(append(what, m.job, host)...)[1:], getenv: getenv}
	m.direct = true
	m.find = func() (point, error) {
		return point{network: "unix", addrs: append(names[:tries:tries], private.paths()...), secret: m.onHost()}, nil
	}
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		l, err := listenFirst(simhost.Of(ctx), inet.ListenLocal, names)
		if errors.Is(err, syscall.EADDRINUSE) {
			if p := private.listen(); p != nil {
				return p, m.onHost(), nil
			}
		}
		return l, m.onHost(), err
	}
}

// onHost is the secret at a Unix socket, where the kernel says who comes.
func (m *joinConfig) onHost() auth.Secret {
	if m.secret.IsZero() {
		return auth.ByKernel()
	}
	return m.secret
}

// tries is how many ports, or names, a job has to choose from. All ranks derive
// the same; rank 0 takes the first that is free, and the handshake tells the
// others whom they have found.
const tries = 8

// listenFirst listens at the first address that is free.
func listenFirst(h simhost.Host, listen func(h simhost.Host, addr string) (net.Listener, error),
	addrs []string) (net.Listener, error) {
	var last error
	for _, a := range addrs {
		l, err := listen(h, a)
		if err == nil {
			return l, nil
		}
		if last = err; !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fault(System, "rank 0 cannot listen at any of %s: %v; choose an address with GOCCL_ROOT=host:port",
		strings.Join(addrs, ", "), last)
}
