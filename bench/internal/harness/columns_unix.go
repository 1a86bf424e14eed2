//go:build unix

package harness

import (
	"os"

	"golang.org/x/sys/unix"
)

// screenColumns is how wide a screen is, 0 if it does not say.
func screenColumns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
