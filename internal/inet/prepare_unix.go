//go:build unix

package inet

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare asks a socket that is not connected yet what the dialer asks it later. Where a sandbox denies that,
// the dialer takes the connection for one that is still being made, until its limit. And it lets others bind
// the port that the connection takes.
func prepare(fd uintptr, network string) error {
	if _, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if _, err := unix.Getpeername(int(fd)); isDenial(err) {
		return os.NewSyscallError("getpeername", err)
	}
	if network == "unix" {
		return nil
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
}

func isDenial(err error) bool {
	return err == syscall.EPERM || err == syscall.EACCES || err == syscall.ENOSYS
}
