// Package relay is the ranks' side of a relay: a process that all of them reach, and that passes bytes between two of
// them that cannot connect. [boot.ListenRelay] serves one; GOCCL_RELAY says where.
//
// A process that listens keeps a few connections at the relay, parked under the address that others dial. A process
// whose dial of that address has failed asks the relay for the listener. The relay joins the two connections: it
// says go on both, and copies bytes from then on. To the two ends the result is a TCP connection like any other.
// Their own handshake and all that follows pass it, sealed with the job's secret: a stream through a relay is always
// encrypted.
//
// The relay's handshake proves a key that is derived from the secret, and from which the secret does not follow. So
// a relay that is given that key alone learns who talks with whom, when, and how much, and cannot read it.
//
// [boot.ListenRelay]: https://pkg.go.dev/github.com/goccl/goccl/ccl/boot#ListenRelay
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/simhost"
)

// Job is what a relay's handshakes have in the place of a job's name.
const Job = "goccl relay"

// Go is the byte by which the relay says on both connections that they are joined.
const Go = 'g'

// What a Request asks for.
const (
	Listen byte = 'l' // to be joined with who dials Name
	Dial   byte = 'd' // to be joined with who listens at Name
)

// Request is the hello of a connection to a relay: kind 1, ID 16, and Name as text.
type Request struct {
	Kind byte
	ID   [16]byte       // of the listener, one for all of its connections; zero in a Dial
	Name netip.AddrPort // at which others dial the listener
}

const requestHead = 1 + 16

// mostName is the longest text of an address and a port: IPv6, with a zone.
const mostName = 80

// Append adds q, as it is sent, to b.
func (q Request) Append(b []byte) []byte {
	b = append(append(b, q.Kind), q.ID[:]...)
	return append(b, q.Name.String()...)
}

var errRequest = errors.New("malformed request to a relay")

// Parse reads what Append has made.
func Parse(b []byte) (q Request, err error) {
	if len(b) <= requestHead || len(b) > requestHead+mostName || b[0] != Listen && b[0] != Dial {
		return Request{}, errRequest
	}
	q.Kind, q.ID = b[0], [16]byte(b[1:])
	q.Name, err = netip.ParseAddrPort(string(b[requestHead:]))
	if err != nil || q.Name.Port() == 0 || q.Name.String() != string(b[requestHead:]) ||
		(q.ID == [16]byte{}) != (q.Kind == Dial) {
		return Request{}, errRequest
	}
	return q, nil
}

// Key is what the relay of a job with that secret is given.
func Key(secret auth.Secret) auth.Secret { return secret.Derive("goccl relay key", nil) }

// Conn is a connection through a relay.
type Conn struct {
	net.Conn // to the relay
	via      addr
}

// addr is the other end of a connection through a relay.
type addr struct {
	name string
	at   string // the relay's
}

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return a.name + ", through the relay at " + a.at }

// Relay is the address of the relay.
func (a addr) Relay() string { return a.at }

// RemoteAddr is the other end, and the relay, as errors name them.
func (c *Conn) RemoteAddr() net.Addr { return c.via }

// Relayed has package auth encrypt whatever passes c.
func (c *Conn) Relayed() {}

// CloseWrite ends what this end sends.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// relay is the one that a process has been given.
type relay struct {
	at  string
	key auth.Secret
}

// of is the relay of this process, or of that of h; nil if it has none.
func of(h simhost.Host) (*relay, error) {
	getenv := getenvOf(h)
	at := environ.Relay.Text(getenv)
	if at == "" {
		return nil, nil
	}
	secret, err := auth.FromEnv(getenv)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s=%s: %w", environ.Relay.Name, at, err)
	case secret == nil:
		return nil, fmt.Errorf("%s=%s, but %w: a relay takes those alone that know it, in %s or %s", environ.Relay.Name, at,
			auth.ErrRequired, environ.SecretFile.Name, environ.SecretText.Name)
	}
	return &relay{at, Key(auth.Given(secret))}, nil
}

// isSet reports whether the process has a relay.
func isSet(h simhost.Host) bool { return environ.Relay.Text(getenvOf(h)) != "" }

func getenvOf(h simhost.Host) func(string) string {
	if h == nil {
		return os.Getenv
	}
	return environ.Of(h.Environ())
}

const (
	dialMost      = 3 * time.Second  // for a connection to the relay
	handshakeMost = 10 * time.Second // for it to answer
	// goMost is how long the relay may take to join a connection: the listener may be about to park another.
	goMost = 10 * time.Second
)

// open has the relay accept q. The connection is under the stream, and is used once the relay has said go on that.
func (r *relay) open(ctx context.Context, q Request) (net.Conn, *auth.Stream, error) {
	conn, err := inet.Dial(ctx, "tcp", r.at, dialMost) // no result: the end of ctx has it after the return
	if err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(handshakeMost)) // before the end of ctx may set another
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	s, _, err := auth.Client(conn, Job, r.key, q.Append(nil))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, s, nil
}

// awaitGo waits for the relay's go.
func awaitGo(s *auth.Stream, wait func(b []byte) error) error {
	var b [1]byte
	if err := wait(b[:]); err != nil {
		return err
	}
	if b[0] != Go {
		return auth.ErrProtocol
	}
	return nil
}

// dial connects with who listens at name.
func (r *relay) dial(ctx context.Context, name netip.AddrPort) (*Conn, error) {
	conn, s, err := r.open(ctx, Request{Kind: Dial, Name: name})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = awaitGo(s, func(b []byte) error { return auth.Await(s, b, goMost) })
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Conn{conn, addr{name.String(), r.at}}, nil
}

// park waits at the relay until somebody has dialed name.
func (r *relay) park(ctx context.Context, q Request) (*Conn, error) {
	conn, s, err := r.open(ctx, q)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = awaitGo(s, func(b []byte) error { _, err := io.ReadFull(s, b); return err })
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Conn{conn, addr{"a rank that dialed " + q.Name.String(), r.at}}, nil
}
