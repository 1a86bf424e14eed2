//go:build unix

package harness

import (
	"os"
	"os/signal"
	"syscall"
)

// brokenPipes has writes to a pipe whose reader has gone fail, where they would end this process before it has removed
// what it has left on nodes. undo takes that back.
func brokenPipes() (undo func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
