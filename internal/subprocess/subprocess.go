// Package subprocess starts processes that end with this one, that a terminal's Ctrl-C does not
// reach twice, and whose output is not lost.
package subprocess

import "runtime"

// Locked calls f on a thread that stays until f returns. Linux ends a child that is to end with its
// parent when the thread ends that has started it.
func Locked(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- f()
	}()
	return <-done
}
