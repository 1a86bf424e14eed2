//go:build fault && unix

package inject

import (
	"os"
	"syscall"
)

// signal sends this process a signal by its name.
func signal(name string) {
	s := syscall.SIGKILL
	if name == "STOP" {
		s = syscall.SIGSTOP
	}
	syscall.Kill(os.Getpid(), s)
}
