// Package simhost is the seam between a process of a job and the outside: the network by which it reaches others,
// and whether it may go on. Without a [Host] that is this process, on the kernel's network. A simulation gives each
// of its processes a Host, in the context of NewComm, so that a job of several hosts runs in one process and in
// virtual time.
//
// What depends on it is small, since internal/inet binds and dials, and internal/lived counts time:
//
//   - inet.Dial, inet.ListenAt, inet.ListenLocal and lived.Within ask for the Host of their context;
//   - a job's monitor and its waits call [Live], as a stopped process takes no step;
//   - a lock that is held over a read, a write or a dial is a [Mutex].
package simhost

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Host is a simulated process on a host of its own.
type Host interface {
	// Listen listens at addr, host:port, of this host. Port 0 takes a free one. A name that begins with @ is that of
	// a Unix socket, which this host alone reaches.
	Listen(addr string) (net.Listener, error)
	// Dial connects to host:port, or to such a name, until ctx ends.
	Dial(ctx context.Context, addr string) (net.Conn, error)
	// Addr is the address of this host.
	Addr() netip.Addr
	// ID tells the process apart from others.
	ID() [16]byte
	// Live returns once the process may go on: it is neither stopped nor ended.
	Live()
	// Environ is what its environment has besides that of this process, as name=value.
	Environ() []string
	// Started is whether the process was in a job when that began. Package ccl keeps it.
	Started() *atomic.Bool
}

// Polled is a connection of a Host. It is polled, as a socket is by its descriptor.
type Polled interface {
	net.Conn
	// TryRead and TryWrite move what they can now. They return 0 and nil if that is nothing.
	TryRead(b []byte) (int, error)
	TryWrite(b []byte) (int, error)
	// Ready reports whether TryRead, or TryWrite, would move something or fail.
	Ready(write bool) bool
	// Tell has ch, which has room for one, receive when Ready may have changed, until Untell.
	Tell(ch chan struct{})
	Untell(ch chan struct{})
	// Abort resets the connection.
	Abort()
	// RoundTrip is how long a packet takes to the other end and back.
	RoundTrip() time.Duration
}

type key struct{}

// With returns ctx in which processes are those of h; ctx itself if h is nil.
func With(ctx context.Context, h Host) context.Context {
	if h == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, h)
}

// Of returns the Host of ctx, nil if it has none. A nil ctx has none: what is called with it refuses it.
func Of(ctx context.Context) Host {
	if ctx == nil {
		return nil
	}
	h, _ := ctx.Value(key{}).(Host)
	return h
}

// Live returns once the process of h may go on.
func Live(h Host) {
	if h != nil {
		h.Live()
	}
}

// Mutex is a lock that may be held while its holder waits for others. A goroutine that waits for it sleeps as
// testing/synctest understands it, so that virtual time goes on; one that waits for a sync.Mutex does not.
type Mutex struct {
	once sync.Once
	c    chan struct{}
}

// Lock locks m.
func (m *Mutex) Lock() {
	m.once.Do(func() { m.c = make(chan struct{}, 1) })
	m.c <- struct{}{}
}

// Unlock unlocks m.
func (m *Mutex) Unlock() { <-m.c }
