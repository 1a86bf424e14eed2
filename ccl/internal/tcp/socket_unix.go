//go:build unix && !aix && !(linux && !386 && !s390x)

package tcp

import (
	"errors"
	"syscall"
)

// The socket is non-blocking, and Go ignores SIGPIPE on all files but 1 and 2.

func send(fd int, b []byte) (int, syscall.Errno) { return count(syscall.Write(fd, b)) }

func receive(fd int, b []byte) (int, syscall.Errno) { return count(syscall.Read(fd, b)) }

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

// tuneLocal has nothing to do here.
func tuneLocal(int) {}
