package cpu

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A napper sleeps for less than a millisecond. With nothing else to do, time.Sleep does not: the Go runtime waits for
// its timers in epoll_wait(2), which counts in milliseconds. It waits there for a timer of the kernel's as well
// (timerfd_create(2)), which keeps time: 20 microseconds take 1.09 ms by the one and 0.05 by the other.
type napper struct {
	timer *os.File // nil if there is none
	fd    int
	busy  atomic.Bool
	fired [8]byte
}

func (n *napper) open() {
	if fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err == nil {
		n.timer, n.fd = os.NewFile(uintptr(fd), "timerfd"), fd
	}
}

// nap sleeps for d, or reports that it cannot, as while another does.
func (n *napper) nap(d time.Duration) bool {
	if n.timer == nil || !n.busy.CompareAndSwap(false, true) {
		return false
	}
	defer n.busy.Store(false)
	once := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if unix.TimerfdSettime(n.fd, 0, &once, nil) != nil {
		return false
	}
	_, err := n.timer.Read(n.fired[:])
	return err == nil
}

func (n *napper) close() {
	if n.timer != nil {
		_ = n.timer.Close()
	}
}
