package files

import (
	"os"
	"path/filepath"
)

// Same reports whether two names lead to one file, through links too: what is written by the second
// name would overwrite the first. The file need not be there yet. The null device keeps nothing, so
// it is never the same.
func Same(a, b string) bool {
	if a, b = target(a), target(b); a == b {
		return a != os.DevNull
	}
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && one.Mode().IsRegular() && os.SameFile(one, other)
}

// target is the file that a path leads to, through links, also where it is not there yet.
func target(path string) string {
	for range 40 { // as many links as Linux follows
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path
}
