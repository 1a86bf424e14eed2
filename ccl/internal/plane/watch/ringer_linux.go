package watch

import (
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// A ringer wakes the monitor of this process, when another process of the host sends it a datagram,
// and sends such to the others. It has an abstract socket whose name only ranks of the job can
// tell: one descriptor a process, and no connections. What a datagram holds does not matter. A
// stranger that has found the name can wake a monitor too soon, no more.
type ringer struct {
	monitor proc.Watcher
	name    func(local int) string // of the socket of the process whose lowest rank that is
	l       *net.UnixConn
	fd      int

	mu     sync.Mutex
	closed bool
	others map[int]*unix.SockaddrUnix // by rank of the host, once rung
}

// OpenRinger makes the ringer of this process; name is that of the socket of each process of the
// host. Where that cannot be its monitor never idles.
func (s *Host) OpenRinger(name func(local int) string) {
	l, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: "@" + name(s.place()), Net: "unixgram"})
	if err != nil {
		return
	}
	t := &ringer{monitor: s.Monitor, name: name, l: l, others: map[int]*unix.SockaddrUnix{}}
	if raw, err := l.SyscallConn(); err != nil || raw.Control(func(fd uintptr) { t.fd = int(fd) }) != nil {
		l.Close()
		return
	}
	s.Ends.Ringer.Store(t)
	s.Ends.Attending.Go(t.listen)
}

// CloseRinger ends what OpenRinger began.
func (s *Host) CloseRinger() {
	if t := s.Ends.Ringer.Swap(nil); t != nil {
		t.mu.Lock()
		t.closed = true
		t.mu.Unlock()
		t.l.Close()
	}
}

// listen wakes the monitor whenever it is rung.
func (t *ringer) listen() {
	var b [1]byte
	for {
		if _, err := t.l.Read(b[:]); err != nil {
			return
		}
		t.monitor.Ended()
	}
}

// Ring wakes the process whose lowest rank is the l-th of this host. Where its queue is full it is being woken already.
func (t *ringer) Ring(l int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	to := t.others[l]
	if to == nil {
		to = &unix.SockaddrUnix{Name: "@" + t.name(l)}
		t.others[l] = to
	}
	_ = unix.Sendto(t.fd, []byte{1}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, to)
}
