//go:build unix

package tcp

import (
	"fmt"
	"syscall"
)

// fileLimit says how many files this process may have open, and what to do.
func fileLimit() string {
	const advice = "raise it with ulimit -n, or run fewer ranks per process: each stream is a file"
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return "the limit of this process is reached; " + advice
	}
	return fmt.Sprintf("this process may have %d files open; %s", lim.Cur, advice)
}
