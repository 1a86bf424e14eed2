//go:build unix

package subprocess

import (
	"os"
	"syscall"
)

// Wishes are the signals by which somebody asks processes for something else than their end.
var Wishes = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT}

// PassOn tells the processes that this one has started of one of Wishes. SIGTSTP then stops this process, as
// it would have without them.
func PassOn(sig os.Signal, tell func(os.Signal)) {
	tell(sig)
	if sig == syscall.SIGTSTP {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}
