//go:build !unix || solaris || aix

package boot

import "os"

// lock is for systems with flock(2).
func lock(*os.File) error { return nil }
