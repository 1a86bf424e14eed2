package files

import (
	"errors"
	"io/fs"
	"os"
)

// removals is how often RemoveAll tries.
const removals = 10

// RemoveAll is os.RemoveAll of a directory that has been renamed so that nobody makes a file there
// any more, but for one whose open was under way: such a file comes after the others were listed.
func RemoveAll(dir string) (err error) {
	for range removals {
		if err = os.RemoveAll(dir); !errors.Is(err, fs.ErrExist) { // that it is not empty, for one
			return err
		}
	}
	return err
}
