//go:build unix

package boot

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/goccl/goccl/internal/subprocess"
)

// forwarded are the signals that Spawn passes on to its ranks.
var forwarded = append([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, subprocess.Wishes...)

var terminate os.Signal = syscall.SIGTERM

// endsRanks tells signals that ask for the end from those that ask for something else.
func endsRanks(sig os.Signal) bool { return !slices.Contains(subprocess.Wishes, sig) }

// signalGroup signals a rank and what it has started: each has a process group of
// its own, which also keeps a terminal's Ctrl-C from coming twice.
func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if s == syscall.SIGTSTP { // no rank is to miss it, and none has a terminal
			s = syscall.SIGSTOP
		}
		syscall.Kill(-cmd.Process.Pid, s)
	}
}

// signalOf is the signal that ended a process, or nil.
func signalOf(state *os.ProcessState) os.Signal {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return nil
}

// listenerFile is a listener as a file that a child can inherit.
func listenerFile(l net.Listener) (*os.File, error) { return l.(*net.TCPListener).File() }
