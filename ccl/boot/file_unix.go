//go:build unix

package boot

import (
	"os"
	"syscall"
)

// private is nil for a file that belongs to this user, and that nobody
// else can read or change.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fault(System, "%v", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm()&0o077 != 0 || !ok || int(st.Uid) != os.Geteuid() {
		return fault(Unauthorized, "%s belongs to another user, or others can read it; remove it", f.Name())
	}
	return nil
}
