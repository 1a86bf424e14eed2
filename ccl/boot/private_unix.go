//go:build unix

package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// privatePlaces are where the ranks of one host meet if others have taken all names that anybody
// can take: at a socket in a directory in which only this user can make files.
type privatePlaces struct {
	name   string // of the socket
	getenv func(string) string
}

// maxSocketPath is the longest path of a socket (unix(7)).
const maxSocketPath = 107

// paths are those in the directories that there are.
func (p privatePlaces) paths() (all []string) {
	add := func(dir string, stat func(string) (fs.FileInfo, error)) {
		if !filepath.IsAbs(dir) {
			return
		}
		if info, err := stat(dir); err == nil && isOwn(info) {
			if path := filepath.Join(dir, p.name); len(path) <= maxSocketPath {
				all = append(all, path)
			}
		}
	}
	add(p.getenv("XDG_RUNTIME_DIR"), os.Stat)
	add(p.getenv("HOME"), os.Stat)
	add(p.shared(), os.Lstat) // a link there could be anybody's
	return all
}

// shared is the directory for this user in the one for all.
func (p privatePlaces) shared() string { return filepath.Join(os.TempDir(), ofUser("goccl")) }

// listen listens at the first of them; nil if there is none.
func (p privatePlaces) listen() net.Listener {
	os.Mkdir(p.shared(), 0o700) // if it is there, paths looks whose it is
	for _, path := range p.paths() {
		l, err := net.Listen("unix", path)
		if errors.Is(err, syscall.EADDRINUSE) && isLeft(path) {
			os.Remove(path)
			l, err = net.Listen("unix", path)
		}
		if err == nil {
			return l
		}
	}
	return nil
}

// isLeft reports whether nobody listens at a socket any more: its process was killed.
func isLeft(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// ofUser is a name for this user alone.
func ofUser(name string) string { return fmt.Sprintf("%s-%d", name, os.Geteuid()) }

// isOwn reports whether info is that of a directory in which only this user can make files.
func isOwn(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm()&0o022 == 0 && int(st.Uid) == os.Geteuid()
}
