//go:build unix

package boot

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// inherited is what of makes of an inherited descriptor, of which it gets a duplicate: the original
// is not ours to close, but is for this process and not for those that it starts.
func inherited[T any](fd int, of func(*os.File) (T, error)) (made T, err error) {
	if fd < 3 {
		return made, errNoInherit
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return made, os.NewSyscallError("fcntl", err)
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(dup), "inherited")
	defer f.Close()
	return of(f)
}

func inheritedListener(fd int) (net.Listener, error) { return inherited(fd, net.FileListener) }

func inheritedConn(fd int) (net.Conn, error) { return inherited(fd, net.FileConn) }
