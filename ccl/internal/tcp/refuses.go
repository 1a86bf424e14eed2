package tcp

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// Refuses reports whether the host at addr says, within d, that nobody listens there any more: the
// process that did has ended, or left. That its host does not answer, or somebody listens there all
// that time, says nothing; nor does a refusal where only a relay has reached addr. A process that ends
// closes its listener a little after its connections (Linux: last), so it is asked again.
func (n *Node) Refuses(addr netip.AddrPort, d time.Duration) bool {
	at := simhost.Of(n.ctx)
	if !n.out.paths.Trusts(at, addr) {
		return false
	}
	ctx, end := lived.Within(simhost.With(context.Background(), at), d)
	defer end()
	for pause := time.Millisecond; ; pause *= 2 {
		conn, err := inet.Dial(ctx, "tcp", addr.String(), 0)
		switch {
		case err == nil:
			conn.Close()
		case !errors.Is(err, syscall.ECONNRESET): // which a listener does that is being closed
			return errors.Is(err, syscall.ECONNREFUSED)
		}
		if !lived.Sleep(ctx, pause) {
			return false
		}
	}
}
