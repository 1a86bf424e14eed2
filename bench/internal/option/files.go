package option

import (
	"fmt"
	"os"
	"path/filepath"
)

// apart refuses two reports in one file, by whatever names: the second would overwrite the first.
func (o Options) apart() error {
	type file struct{ flag, path, real string }
	var seen []file
	for _, f := range []file{{flag: "J", path: o.JSON}, {flag: "csv", path: o.CSV}, {flag: "html", path: o.HTML}} {
		if f.path == "" {
			continue
		}
		f.real = real(f.path)
		for _, first := range seen {
			if first.real == f.real && f.real != os.DevNull || sameFile(first.real, f.real) {
				return fmt.Errorf("-%s %s: -%s writes that file; give another name", f.flag, f.path, first.flag)
			}
		}
		seen = append(seen, f)
	}
	return nil
}

// real is the file that a path leads to, through links, also where it is not there yet.
func real(path string) string {
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

// sameFile reports whether two paths are one regular file, as hard links are.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && one.Mode().IsRegular() && os.SameFile(one, other)
}
