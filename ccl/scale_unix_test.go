//go:build unix

package ccl_test

import "golang.org/x/sys/unix"

// fileLimit is how many files this process may have open. Go raises the soft limit to
// the hard one as it starts.
func fileLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(l.Cur, 1<<30))
}
