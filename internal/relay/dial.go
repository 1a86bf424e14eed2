package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/simhost"
)

// directMost is how long a direct connection may take before the relay is asked: the first packet may be lost, and
// comes again after a second.
const directMost = 2 * time.Second

// directAgain is after how long a direct connection to a host is tried again that the relay has reached, and againMost
// how long that may take: who waits for a second alone still gets to the relay.
const (
	directAgain = time.Minute
	againMost   = directMost / 4
)

// Paths is how a process reaches others, and what it knows of that. The zero value knows nothing.
type Paths struct {
	mu      sync.Mutex
	direct  map[netip.AddrPort]bool  // have been reached without the relay
	relayed map[netip.Addr]time.Time // when the relay reached that host, and the process itself did not
}

// Dial is [inet.Dial], and asks the relay of the process, if it has one, where addr is not reached within 2 s. A
// connection through the relay is a *Conn. limit is that of the direct connection: the relay is asked once, and takes
// up to 23 s more, until ctx ends. Where neither comes about, a refusal by addr counts as such only if addr
// has been reached before: behind another router another host may have that address, and refuses.
func (p *Paths) Dial(ctx context.Context, network, addr string, limit time.Duration) (net.Conn, error) {
	h := simhost.Of(ctx)
	name, perr := netip.ParseAddrPort(addr)
	if network != "tcp" || perr != nil || !isSet(h) {
		return inet.Dial(ctx, network, addr, limit)
	}
	r, err := of(h)
	if err != nil {
		return nil, &inet.Trouble{Text: err.Error(), Lasting: true, Err: err}
	}
	name = netip.AddrPortFrom(name.Addr().Unmap(), name.Port())
	var by *Conn
	var why error // the relay's, once it was asked
	known, first := p.prefers(name.Addr())
	if first {
		if by, why = r.dial(ctx, name); why == nil {
			return by, nil
		}
	}
	least := directMost
	if known {
		least = againMost
	}
	if limit > 0 {
		least = min(limit, least)
	}
	conn, err := inet.Dial(ctx, network, addr, least)
	switch {
	case err == nil:
		p.reached(name)
		return conn, nil
	case ctx.Err() != nil, inet.Of(err) != nil:
		return nil, err
	}
	if why == nil {
		by, why = r.dial(ctx, name)
	}
	if why == nil {
		if p.isNew(name.Addr()) {
			slog.Warn(fmt.Sprintf("goccl: %v is reached through the relay at %s, which is slower: %v", name, r.at, inet.Reason(err)))
		}
		return by, nil
	}
	both := &neither{name, r.at, inet.Reason(err), inet.Reason(why), err}
	if errors.Is(err, syscall.ECONNREFUSED) && !p.Trusts(h, name) {
		both.direct = nil
	}
	return nil, both
}

// neither says that an address was reached in no way.
type neither struct {
	name netip.AddrPort
	at   string
	why  error // why not directly
	not  error // why not through the relay
	// direct is the error of the direct connection, nil if it proves nothing
	direct error
}

func (e *neither) Error() string {
	return fmt.Sprintf("%v; nor through the relay at %s: %v", e.why, e.at, e.not)
}
func (e *neither) Unwrap() error { return e.direct }

// Because is why in the place of err, with which a direct connection failed. What came of the relay stays in it.
func Because(err, why error) error {
	if e := (*neither)(nil); errors.As(err, &e) {
		return &neither{e.name, e.at, why, e.not, why}
	}
	return why
}

// Trusts reports whether a host that refuses connections at addr is the one whose process listened there.
func (p *Paths) Trusts(h simhost.Host, addr netip.AddrPort) bool {
	if !isSet(h) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.direct[addr]
}

// prefers reports whether the relay has reached host, and nothing else has since, and whether it is asked first.
func (p *Paths) prefers(host netip.Addr) (known, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known := p.relayed[host]
	return known, known && time.Since(at) < directAgain
}

// reached notes that addr has been reached directly.
func (p *Paths) reached(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relayed, addr.Addr())
	if p.direct == nil {
		p.direct = map[netip.AddrPort]bool{}
	}
	p.direct[addr] = true
}

// isNew notes that the relay has reached host, and reports whether that is news.
func (p *Paths) isNew(host netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, old := p.relayed[host]
	if p.relayed == nil {
		p.relayed = map[netip.Addr]time.Time{}
	}
	p.relayed[host] = time.Now()
	return !old
}
