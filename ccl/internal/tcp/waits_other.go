//go:build !unix || aix

package tcp

import "time"

// Waits are streams that one goroutine waits for together.
type Waits struct {
	conn  *Conn // the last that was added
	count int
	write bool // one has been added for room to send
	ready bool // one need not be waited for
}

// Add adds c, for the next Wait: for what c receives, or with write for room to send.
func (w *Waits) Add(c *Conn, write bool) {
	w.conn, w.write, w.ready = c, w.write || write, w.ready || !write && c.sealed.holds()
	w.count++
}

// Wait blocks until one of the streams can move what it has been added for, or receives no more and has been added for that, but
// no longer than d, and removes them. It returns false, at once, if it cannot wait for these streams: here it can wait for what
// one alone receives.
func (w *Waits) Wait(d time.Duration) bool {
	defer func() { *w = Waits{} }()
	switch {
	case w.ready:
		return true
	case w.count != 1 || w.write:
		return false
	}
	w.conn.Wait(d, false)
	return true
}
