package boot

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/plain"
)

// hallClient is the Store of a Hall in another process. A connection carries one request at a time;
// requests at the same time have one each.
type hallClient struct {
	addrs []string // of the one hall, of which all but one may be dark
	party

	mu       sync.Mutex
	at       int // the address in use
	idle     []*auth.Stream
	patience time.Duration // hallPatience, but in tests
	reached  bool          // where it does not listen after that, it has ended
}

const (
	// hallPatience is how long a client looks for a hall that does not listen, as it may be about to,
	// or with which it does not come to an end: the job may have stood still meanwhile.
	hallPatience = 5 * time.Second
	// mostIdle is how many connections a client keeps.
	mostIdle = 2
)

// DialHall returns the store of the [Hall] at addr, host:port, which is asked when it is used. A hall
// may have several addresses, with commas between: where it does not answer at one, the next is tried.
// So a hall with a file ([ListenHallFile]) may be started again on another host. At no time may two of
// them have a hall of their own. The secret is the job's; hex digits stand for their bytes, and nil
// takes that of the environment. A request whose connection breaks is an error; then it may have been
// carried out or not. The hall refuses a process of another job than its own, as GOCCL_JOB names it.
func DialHall(addr string, secret []byte) (Store, error) {
	addrs := strings.Split(addr, ",")
	for _, one := range addrs {
		host, port, err := net.SplitHostPort(one)
		n, perr := strconv.Atoi(port)
		if err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
			return nil, fault(Argument, "%q is no place of a hall: host:port, with a port from 1 to 65535, or a directory, /dir", one)
		}
	}
	p, err := ofJob(secret, os.Environ())
	if err != nil {
		return nil, err
	}
	return &hallClient{addrs: addrs, party: p, patience: hallPatience}, nil
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

// SetWhenLost has the hall set key once this process has ended, or its connection to the hall has, until end is called:
// as lost, which sets key at once, or not.
func (c *hallClient) SetWhenLost(ctx context.Context, key string) (end func(lost bool), err error) {
	_, conn, err := c.exchange(ctx, request{what: askWill, key: key, n: 1})
	switch {
	case err != nil && conn != nil:
		c.keep(conn)
		return nil, err
	case err != nil:
		return nil, err
	case conn == nil: // closed as ctx ended, so the hall sets the key
		return nil, ended(ctx.Err(), "the context ended as the hall was told of "+key)
	}
	return func(lost bool) {
		if !lost {
			conn.SetDeadline(time.Now().Add(c.patience))
			conn.Write(request{what: askWill, key: key}.append(nil))
			if _, err := readReply(conn); err == nil && conn.SetDeadline(time.Time{}) == nil {
				c.keep(conn)
				return
			}
		}
		conn.Close()
	}, nil
}

// ask sends q and returns what the hall says.
func (c *hallClient) ask(ctx context.Context, q request) (reply, error) {
	r, conn, err := c.exchange(ctx, q)
	if conn != nil {
		c.keep(conn)
	}
	return r, err
}

// exchange is ask, and returns the connection, nil where ctx's end or an error has closed it.
func (c *hallClient) exchange(ctx context.Context, q request) (r reply, open *auth.Stream, err error) {
	if err := checkKey(ctx, q.key, len(q.value)); err != nil {
		return r, nil, err
	}
	conn, addr, err := c.connect(ctx)
	if err != nil {
		return r, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if _, err = conn.Write(q.append(nil)); err == nil {
		r, err = readReply(conn)
	}
	ok := stop()
	switch {
	case err != nil:
		if conn.Close(); q.what == askSet || q.what == askAdd { // what waits may wait for long
			c.leave(addr)
		}
		if ctx.Err() != nil {
			return reply{}, nil, ended(ctx.Err(), "the context ended before the hall at "+addr+" answered about "+q.key)
		}
		if errors.Is(err, errFrame) {
			return reply{}, nil, fault(System, "what listens at %s is no hall of goccl, or is damaged: %v", addr, err)
		}
		return reply{}, nil, fault(Lost, "the connection to the hall at %s broke: %v; has the launcher ended?", addr, err)
	case ok:
		open = conn
	}
	if r.code != 0 {
		return reply{}, open, fault(r.code, "the hall at %s: %s", addr, r.value)
	}
	return r, open, nil
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

// unused takes a connection out of those that wait, nil if there is none.
func (c *hallClient) unused() *auth.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	conn := c.idle[n-1]
	c.idle = c.idle[:n-1]
	return conn
}

// place is the address in use.
func (c *hallClient) place() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs[c.at]
}

// leave has the next address be in use, if addr is, and drops the connections to that.
func (c *hallClient) leave(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.addrs) == 1 || c.addrs[c.at] != addr {
		return
	}
	c.at = (c.at + 1) % len(c.addrs)
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
}

// connect returns a connection on which nothing is asked, and whereto.
func (c *hallClient) connect(ctx context.Context) (*auth.Stream, string, error) {
	for conn := c.unused(); conn != nil; conn = c.unused() {
		if isOpen(conn) {
			return conn, c.place(), nil
		}
		conn.Close()
	}
	c.mu.Lock()
	reached := c.reached
	c.mu.Unlock()
	over := lived.For(c.patience)
	for wait, try := firstBackoff, 1; ; wait, try = min(wait*3/2, maxBackoff), try+1 {
		addr := c.place()
		conn, err := c.dial(ctx, addr)
		var refused *auth.Refused
		switch {
		case err == nil:
			c.mu.Lock()
			c.reached = true
			c.mu.Unlock()
			return conn, addr, nil
		case errors.As(err, &refused):
			return nil, "", fault(Argument, "the hall at %s: %s", addr, plain.Text(refused.Text))
		case lived.Ended(ctx) != nil:
			c.leave(addr)
			return nil, "", ended(lived.Ended(ctx), "the context ended before the hall at "+addr+" was reached")
		case errors.Is(err, auth.ErrUnauthorized), errors.Is(err, auth.ErrCipher):
			return nil, "", fault(Unauthorized, "the hall at %s: %v", addr, err)
		case errors.Is(err, auth.ErrVersion):
			return nil, "", fault(Version, "the hall at %s: %v", addr, err)
		case errors.Is(err, auth.ErrProtocol), errors.Is(err, auth.ErrJob):
			return nil, "", fault(System, "what listens at %s is no hall: %v", addr, err)
		case try < len(c.addrs):
			c.leave(addr)
			continue
		case !isEnding(err) && !inet.IsTimeout(err), inject.Wrong("boot.hall") && inet.IsTimeout(err),
			reached && errors.Is(err, syscall.ECONNREFUSED), over():
			c.leave(addr)
			return nil, "", fault(Lost, "the hall at %s cannot be reached: %v; has the launcher ended?",
				strings.Join(c.addrs, ","), err)
		}
		c.leave(addr)
		pause(ctx, wait)
	}
}

// dial makes a connection to addr. A hall with several addresses has less time at each.
func (c *hallClient) dial(ctx context.Context, addr string) (*auth.Stream, error) {
	limit := handshakeLimit
	if len(c.addrs) > 1 {
		limit = c.patience / 2
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := inet.Dial(limited, "tcp", addr, 0)
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
