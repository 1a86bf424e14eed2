package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/plain"
	"github.com/goccl/goccl/internal/simhost"
)

// berths is how many connections a listener keeps parked. A Dial takes one, and another is parked in its place.
const berths = 2

// Backoff of a listener whose relay does not let it park.
const (
	parkAgain = 50 * time.Millisecond
	parkLate  = 5 * time.Second
)

// listener accepts what comes to an address, and what the relay joins with it.
type listener struct {
	net.Listener
	came chan accepted
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	told sync.Once // that the relay does not take it
}

type accepted struct {
	conn net.Conn
	err  error
}

// NewListener is l, which others dial at name. Where the process, or that of h, has a relay, who does not reach name
// comes through that. Those connections are a *Conn. It is an error if the process has a relay, and no secret.
func NewListener(h simhost.Host, l net.Listener, name netip.AddrPort) (net.Listener, error) {
	r, err := of(h)
	if r == nil || err != nil {
		return l, err
	}
	w := &listener{Listener: l, came: make(chan accepted)}
	w.ctx, w.stop = context.WithCancel(simhost.With(context.Background(), h))
	q := Request{Kind: Listen, Name: netip.AddrPortFrom(name.Addr().Unmap(), name.Port())}
	rand.Read(q.ID[:])
	w.wg.Go(w.accept)
	for range berths {
		w.wg.Go(func() { w.park(r, q) })
	}
	return w, nil
}

// accept passes on what comes to the address itself.
func (l *listener) accept() {
	for {
		conn, err := l.Listener.Accept()
		if !l.give(accepted{conn, err}) || errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// give has Accept return a, and reports whether l is still open.
func (l *listener) give(a accepted) bool {
	select {
	case l.came <- a:
		return true
	case <-l.ctx.Done():
		if a.conn != nil {
			a.conn.Close()
		}
		return false
	}
}

// park keeps one connection at the relay.
func (l *listener) park(r *relay, q Request) {
	for wait := parkAgain; l.ctx.Err() == nil; {
		conn, err := r.park(l.ctx, q)
		if err == nil {
			wait = parkAgain
			if !l.give(accepted{conn, nil}) {
				return
			}
			continue
		}
		if refused := (*auth.Refused)(nil); errors.As(err, &refused) || errors.Is(err, auth.ErrUnauthorized) {
			l.told.Do(func() {
				slog.Warn(fmt.Sprintf("goccl: the relay at %s refuses a connection of this process, which listens at %v: %s", r.at, q.Name,
					plain.Text(err.Error())))
			})
		}
		lived.Sleep(l.ctx, wait)
		wait = min(2*wait, parkLate)
	}
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.came:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close ends the listener, and what it has parked.
func (l *listener) Close() error {
	l.stop()
	err := l.Listener.Close()
	l.wg.Wait()
	return err
}
