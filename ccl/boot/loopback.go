package boot

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/goccl/goccl/internal/inet"
)

// listenHere listens at the first of addrs, this host's own, that it has: there may be no IPv4.
// The environment says at which ports.
func listenHere(getenv func(string) string, addrs ...string) (net.Listener, error) {
	var first error
	for _, a := range addrs {
		l, err := inet.ListenAs(getenv, a)
		if err == nil {
			return l, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// reachHere is the error for a listener of this host's own that this host does not reach, as in a sandbox
// whose loopback interface is down: nobody ever would, and all would look for it until the timeout.
func reachHere(l net.Listener) error {
	const limit = time.Second
	conn, err := inet.Dial(context.Background(), "tcp", l.Addr().String(), limit)
	if t := inet.Of(err); t != nil && t.Lasting {
		return fault(System, "%v", t)
	}
	if err != nil {
		return nil // a full queue, say: the ranks try for longer
	}
	conn.Close()
	if t, ok := l.(*net.TCPListener); ok {
		t.SetDeadline(time.Now().Add(limit))
		if c, err := l.Accept(); err == nil { // as a rule the one above; else a rank, which tries again
			c.Close()
		}
		t.SetDeadline(time.Time{})
	}
	return nil
}
