package ckpt

import (
	"os"
	"syscall"
)

// direct is for writes that go past the page cache.
const direct = syscall.O_DIRECT

// notDirect ends direct writes to f, which the end of a file does not fit. f stays open: another
// might have its name by now.
func notDirect(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed syscall.Errno
	err = c.Control(func(fd uintptr) {
		var flags uintptr
		if flags, _, failed = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0); failed == 0 {
			_, _, failed = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFL, flags&^syscall.O_DIRECT)
		}
	})
	if err == nil && failed != 0 {
		err = os.NewSyscallError("fcntl", failed)
	}
	return err
}
