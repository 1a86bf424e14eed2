//go:build unix && !aix && !(linux && !386 && !s390x)

package tcp

import (
	"errors"
	"syscall"
	"time"
)

// The socket is non-blocking, and Go ignores SIGPIPE on all files but 1 and 2.

func send(fd int, b []byte) (int, syscall.Errno) { return count(syscall.Write(fd, b)) }

func receive(fd int, b []byte) (int, syscall.Errno) { return count(syscall.Read(fd, b)) }

func sendBoth(fd int, a, b []byte) (int, syscall.Errno) { return eachOf(fd, a, b, send) }

func receiveBoth(fd int, a, b []byte) (int, syscall.Errno) { return eachOf(fd, a, b, receive) }

// eachOf moves a and, once that is done, b. What fails after a has moved will fail again.
func eachOf(fd int, a, b []byte, move func(int, []byte) (int, syscall.Errno)) (int, syscall.Errno) {
	n, errno := move(fd, a)
	if n < len(a) || errno != 0 {
		return n, errno
	}
	m, _ := move(fd, b)
	return n + m, 0
}

func count(n int, err error) (int, syscall.Errno) {
	if err == nil {
		return n, 0
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	return 0, errno
}

// roundTrip is 0: not known.
func roundTrip(int) time.Duration { return 0 }

// tuneLocal has nothing to do here.
func tuneLocal(int) {}
