//go:build unix && !aix

package tcp

import (
	"time"

	"github.com/goccl/goccl/internal/simhost"
)

// What Conn and Waits do with the connections of a simulation.

// closePolled is Close: what has come is read, so that it does not reset the connection.
func (c *Conn) closePolled() error {
	buf := make([]byte, 64<<10)
	for n := 1; n > 0; {
		n, _ = c.polled.TryRead(buf)
	}
	c.users.Or(closedBit)
	return c.polled.Close()
}

// polledWaits are the connections that one goroutine waits for together.
type polledWaits struct {
	conns []polledWait
	bell  chan struct{}
}

type polledWait struct {
	conn  simhost.Polled
	write bool
}

// wait is Waits.Wait.
func (w *polledWaits) wait(d time.Duration) {
	if w.bell == nil {
		w.bell = make(chan struct{}, 1)
	}
	for _, p := range w.conns {
		p.conn.Tell(w.bell)
	}
	defer func() {
		for _, p := range w.conns {
			p.conn.Untell(w.bell)
		}
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		for _, p := range w.conns {
			if p.conn.Ready(p.write) {
				return
			}
		}
		select {
		case <-w.bell:
		case <-t.C:
			return
		}
	}
}
