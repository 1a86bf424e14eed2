//go:build unix

package subprocess

import (
	"os"
	"syscall"
)

// Wishes are the signals by which somebody asks processes for something else than their end.
var Wishes = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT}

// PassOn passes sig, one of Wishes, to the processes that this process has started. SIGTSTP then stops this process, as
// it does in a program without child processes.
func PassOn(sig os.Signal, tell func(os.Signal)) {
	tell(sig)
	if sig == syscall.SIGTSTP {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}
