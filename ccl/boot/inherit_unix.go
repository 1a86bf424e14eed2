//go:build unix

package boot

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dupFile duplicates an inherited descriptor, whose original is not ours to close, but is for
// this process and not for those that it starts.
func dupFile(fd int, name string) (*os.File, error) {
	if fd < 3 {
		return nil, errNoInherit
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(dup), name), nil
}

func inheritedListener(fd int) (net.Listener, error) {
	f, err := dupFile(fd, "listener")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

func inheritedConn(fd int) (net.Conn, error) {
	f, err := dupFile(fd, "conn")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileConn(f)
}
