//go:build !unix

package harness

import (
	"os"
)

// What a system that is no Unix has not.

// screenColumns is 0: how wide a screen is, nobody is asked here.
func screenColumns(*os.File) int { return 0 }

// brokenPipes has nothing to do where no signal tells of them.
func brokenPipes() (undo func()) { return func() {} }
