//go:build unix

package boot

import (
	"os"
	"syscall"
)

// openFile opens the file at path for reading. It does not wait where that is a pipe, to which nobody may ever write.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// private is nil for a regular file that belongs to this user, and that nobody
// else can read or change.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fault(System, "%v", err)
	}
	if !info.Mode().IsRegular() {
		return fault(Unauthorized, "%s is not a regular file; remove it", f.Name())
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm()&0o077 != 0 || !ok || int(st.Uid) != os.Geteuid() {
		return fault(Unauthorized, "%s belongs to another user, or others can read it; remove it", f.Name())
	}
	return nil
}
