//go:build unix && !solaris && !aix

package boot

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f until it is closed. It is errLocked where another has locked the same file. Where a file system has no
// locks, none is taken.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP):
			return nil
		}
		return err
	}
}
