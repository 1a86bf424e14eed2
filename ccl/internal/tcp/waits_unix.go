//go:build unix && !aix

package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// Waits are streams that one goroutine waits for together. It allocates nothing once it has been used.
type Waits struct {
	conns  []*Conn
	fds    []unix.PollFd
	ready  bool // one of them need not be waited for
	polled polledWaits
}

// Add adds c, for the next Wait: for what c receives, or with write for room to send.
func (w *Waits) Add(c *Conn, write bool) {
	if c.polled != nil {
		w.polled.conns = append(w.polled.conns, polledWait{c.polled, write})
		w.ready = w.ready || !write && c.sealed.holds()
		return
	}
	if !c.use() {
		w.ready = true // it has ended
		return
	}
	events := int16(unix.POLLIN)
	if write {
		events = unix.POLLOUT
	} else if c.ahead.some.Load() || c.sealed.holds() {
		w.ready = true
	}
	w.conns, w.fds = append(w.conns, c), append(w.fds, unix.PollFd{Fd: int32(c.fd), Events: events})
}

// Wait blocks until one of the streams can move what it has been added for, or receives no more and
// has been added for that, but no longer than d, and removes them. It returns false, at once, if it
// cannot wait for these streams.
func (w *Waits) Wait(d time.Duration) bool {
	defer w.reset()
	if len(w.polled.conns) > 0 && !w.ready {
		w.polled.wait(d)
		return true
	}
	if w.ready {
		return true
	}
	if len(w.fds) == 0 {
		return false
	}
	for end := time.Now().Add(d); ; {
		// poll counts milliseconds; a wait of 0 would be none.
		ms := (max(d, 0) + time.Millisecond - 1) / time.Millisecond
		if _, err := unix.Poll(w.fds, int(min(ms, 1<<30))); err != unix.EINTR {
			return true
		}
		if d = time.Until(end); d <= 0 {
			return true
		}
	}
}

func (w *Waits) reset() {
	w.polled.conns = w.polled.conns[:0]
	for _, c := range w.conns {
		c.done()
	}
	w.conns, w.fds, w.ready = w.conns[:0], w.fds[:0], false
}
