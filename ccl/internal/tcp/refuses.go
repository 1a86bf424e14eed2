package tcp

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/inet"
)

// Refuses reports whether the host at addr says, within d, that nobody listens there any more: the process that did has ended,
// or left. That its host does not answer, or somebody listens there all that time, says nothing. A process that ends closes its
// listener a little after its connections (Linux: last), so it is asked again.
func Refuses(addr netip.AddrPort, d time.Duration) bool {
	end := time.Now().Add(d)
	for pause := time.Millisecond; ; pause *= 2 {
		conn, err := inet.Dial(context.Background(), "tcp", addr.String(), max(time.Until(end), time.Millisecond))
		switch {
		case err == nil:
			conn.Close()
		case !errors.Is(err, syscall.ECONNRESET): // which a listener does that is being closed
			return errors.Is(err, syscall.ECONNREFUSED)
		}
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left))
	}
}
