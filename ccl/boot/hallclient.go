package boot

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/plain"
)

// hallClient is the Store of a Hall in another process. A connection carries one request at a time;
// requests at the same time have one each.
type hallClient struct {
	addr string
	party

	mu       sync.Mutex
	idle     []*auth.Stream
	patience time.Duration // see hallPatience; 0 once it has been reached: then it has ended
}

const (
	// hallPatience is how long a client looks for a hall that does not listen: it may be about to.
	hallPatience = 5 * time.Second
	// mostIdle is how many connections a client keeps.
	mostIdle = 2
)

// DialHall returns the store of the [Hall] at addr, host:port, which is asked when it is used. The
// secret is the job's; hex digits stand for their bytes, and nil takes that of the environment. A
// request whose connection breaks is an error; then it may have been carried out or not. The hall
// refuses a process of another job than its own, as GOCCL_JOB names it.
func DialHall(addr string, secret []byte) (Store, error) {
	host, port, err := net.SplitHostPort(addr)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
		return nil, fault(Argument, "%q is no place of a hall: host:port, with a port from 1 to 65535, or a directory, /dir", addr)
	}
	p, err := ofJob(secret, os.Environ())
	if err != nil {
		return nil, err
	}
	return &hallClient{addr: addr, party: p, patience: hallPatience}, nil
}

// Set gives key a value.
func (c *hallClient) Set(ctx context.Context, key string, value []byte) error {
	_, err := c.ask(ctx, request{what: askSet, key: key, value: value})
	return err
}

// Get returns the value of key, and waits until there is one.
func (c *hallClient) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := c.ask(ctx, request{what: askGet, key: key})
	return r.value, err
}

// Wait waits for all keys.
func (c *hallClient) Wait(ctx context.Context, keys ...string) error {
	for _, k := range keys {
		if _, err := c.ask(ctx, request{what: askWait, key: k}); err != nil {
			return err
		}
	}
	return nil
}

// Add changes a number.
func (c *hallClient) Add(ctx context.Context, key string, n int64) (int64, error) {
	r, err := c.ask(ctx, request{what: askAdd, key: key, n: n})
	return r.n, err
}

// ask sends q and returns what the hall says.
func (c *hallClient) ask(ctx context.Context, q request) (r reply, err error) {
	if err := checkKey(ctx, q.key, len(q.value)); err != nil {
		return r, err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return r, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if _, err = conn.Write(q.append(nil)); err == nil {
		r, err = readReply(conn)
	}
	ok := stop()
	switch {
	case err != nil:
		conn.Close()
		if ctx.Err() != nil {
			return reply{}, ended(ctx.Err(), "the context ended before the hall at "+c.addr+" answered about "+q.key)
		}
		if errors.Is(err, errFrame) {
			return reply{}, fault(System, "what listens at %s is no hall of goccl, or is damaged: %v", c.addr, err)
		}
		return reply{}, fault(Lost, "the connection to the hall at %s broke: %v; has the launcher ended?", c.addr, err)
	case ok:
		c.keep(conn)
	}
	if r.code != 0 {
		return reply{}, fault(r.code, "the hall at %s: %s", c.addr, r.value)
	}
	return r, nil
}

// keep has conn wait for the next request.
func (c *hallClient) keep(conn *auth.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= mostIdle {
		conn.Close()
		return
	}
	c.idle = append(c.idle, conn)
}

// connect returns a connection on which nothing is asked.
func (c *hallClient) connect(ctx context.Context) (*auth.Stream, error) {
	c.mu.Lock()
	for n := len(c.idle); n > 0; n = len(c.idle) {
		conn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		if isOpen(conn) {
			c.mu.Unlock()
			return conn, nil
		}
		conn.Close()
	}
	over := time.Now().Add(c.patience)
	c.mu.Unlock()
	for wait := firstBackoff; ; wait = min(wait*3/2, maxBackoff) {
		conn, err := c.dial(ctx)
		var refused *auth.Refused
		switch {
		case err == nil:
			c.mu.Lock()
			c.patience = 0
			c.mu.Unlock()
			return conn, nil
		case errors.As(err, &refused):
			return nil, fault(Argument, "the hall at %s: %s", c.addr, plain.Text(refused.Text))
		case endedBy(ctx) != nil:
			return nil, ended(endedBy(ctx), "the context ended before the hall at "+c.addr+" was reached")
		case errors.Is(err, auth.ErrUnauthorized), errors.Is(err, auth.ErrCipher):
			return nil, fault(Unauthorized, "the hall at %s: %v", c.addr, err)
		case errors.Is(err, auth.ErrVersion):
			return nil, fault(Version, "the hall at %s: %v", c.addr, err)
		case errors.Is(err, auth.ErrProtocol), errors.Is(err, auth.ErrJob):
			return nil, fault(System, "what listens at %s is no hall: %v", c.addr, err)
		case !isEnding(err) && !errors.Is(err, syscall.ETIMEDOUT) || time.Now().After(over):
			return nil, fault(Lost, "the hall at %s cannot be reached: %v; has the launcher ended?", c.addr, err)
		}
		pause(ctx, wait)
	}
}

// endedBy is ctx.Err, or what it is about to be: a dialer looks at the clock itself.
func endedBy(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// dial makes a connection.
func (c *hallClient) dial(ctx context.Context) (*auth.Stream, error) {
	limited, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	conn, err := inet.Dial(limited, "tcp", c.addr, 0)
	if err != nil {
		return nil, err
	}
	s, _, err := shake(ctx, conn, hallJob, c.secret, []byte(c.job))
	return s, err
}

// isOpen reports whether the other end has not closed conn, on which nothing is asked.
func isOpen(conn *auth.Stream) bool {
	conn.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
	defer conn.SetReadDeadline(time.Time{})
	var b [1]byte
	_, err := conn.Read(b[:])
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
