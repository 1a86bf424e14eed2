//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	noWait   = syscall.O_NONBLOCK // for whoever may open the other end of a pipe, or end a lease
	noFollow = syscall.O_NOFOLLOW
)

// others is the error for a file of another user's, who can read what is written there, and for one
// with a second name, which may be a hard link to any file.
func others(name string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid() && !ownsAs(name, st):
		return errors.New("it belongs to another user")
	case st.Nlink > 1:
		return errors.New("it has a second name, a hard link")
	}
	return nil
}

// ownsAs reports whether this user's new files beside name have the owner that st has, as where a
// file server has root's files be nobody's. st is of a file that could be opened to write to it,
// and nobody but its owner may: so the server takes this user for that.
func ownsAs(name string, st *syscall.Stat_t) bool {
	if st.Mode&0o022 != 0 {
		return false
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".goccl-*")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	mine, ok := info.Sys().(*syscall.Stat_t)
	return ok && mine.Uid == st.Uid && mine.Dev == st.Dev
}
