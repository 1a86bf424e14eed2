//go:build unix

package boot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A directory in which all users may write, and none may remove what is another's, is no place for
// a file whose name others can tell: whoever makes one of that name first keeps rank 0 from writing
// it. So rank 0 writes in a subdirectory of its user's, and the others look in all of those.

// sticky reports whether dir is one.
func sticky(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&fs.ModeSticky != 0 && info.Mode().Perm()&0o022 != 0
}

// storeDirs are the directories in which rank 0 may have written: dir, or this user's in dir.
func storeDirs(dir string) []string {
	if !sticky(dir) {
		return []string{dir}
	}
	entries, _ := os.ReadDir(dir)
	var own []string
	for _, e := range entries {
		if name := ofUser("goccl"); e.Name() != name && !strings.HasPrefix(e.Name(), name+"-") {
			continue
		}
		if info, err := e.Info(); err == nil && isOwn(info) {
			own = append(own, filepath.Join(dir, e.Name()))
		}
	}
	return own
}

// oneStoreDir is the one in which all processes of a job write. It is never one of each process's
// own: where somebody else has made that of its name, there is none.
func oneStoreDir(dir string) (string, error) {
	if !sticky(dir) {
		return dir, nil
	}
	own := filepath.Join(dir, ofUser("goccl"))
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(own)
	if err == nil && !isOwn(info) {
		err = fault(Unauthorized, "%s, the store of this user in a directory of all users, was made by somebody else, or others can write there: choose a directory of your own", own)
	}
	return own, err
}

// makeStoreDir is the one in which rank 0 writes.
func makeStoreDir(dir string) (string, error) {
	if !sticky(dir) {
		return dir, nil
	}
	name := ofUser("goccl")
	os.Mkdir(filepath.Join(dir, name), 0o700)
	if own := storeDirs(dir); len(own) > 0 { // the first, where the others look first: what an earlier job has left goes
		return own[0], nil
	}
	return os.MkdirTemp(dir, name+"-") // somebody else has made the one of that name
}
