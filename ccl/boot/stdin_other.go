//go:build !unix

package boot

import "os"

// controls is false: a console is read by all of its processes.
func controls(*os.File) bool { return false }

type foreground struct{ *os.File }
