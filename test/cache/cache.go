// Package cache keeps what tests fetch or build once: in the directory that GOCCL_CACHE names, or
// in goccl below the user's cache.
package cache

import (
	"os"
	"path/filepath"
)

// Dir returns the directory of that name. One that is not there is filled by fill, and appears when it is complete: of
// processes that fill one at the same time the first counts.
func Dir(name string, fill func(dir string) error) (string, error) {
	base, err := os.UserCacheDir()
	base = filepath.Join(base, "goccl")
	if c := os.Getenv("GOCCL_CACHE"); c != "" {
		base, err = c, nil
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fill-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := fill(tmp); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// Whole says that a test builds what go test does not see, such as a program that it does not
// import: where GOCCL_TEST_TREE is the sum of the tree, as in CI, a result of the test that go test
// has kept holds for that tree alone.
func Whole() { os.Getenv("GOCCL_TEST_TREE") }
