//go:build !linux

package proc

// Forked returns false: a forked child is not recognised here, and shares no memory with others.
func Forked() bool { return false }

// HaltFork does nothing.
func HaltFork() {}
