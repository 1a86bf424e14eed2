//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	noWait   = syscall.O_NONBLOCK // for whoever may open the other end of a pipe, or end a lease
	noFollow = syscall.O_NOFOLLOW
)

// others is the error for a file of another user's, who can read what is written there, and for one with a second name, which may be
// a hard link to any file.
func others(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case st.Nlink > 1:
		return errors.New("it has a second name, a hard link")
	}
	return nil
}
