//go:build !unix

package harness

import "os"

// screenColumns is 0: how wide a screen is, nobody is asked here.
func screenColumns(*os.File) int { return 0 }
