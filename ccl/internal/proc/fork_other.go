//go:build !linux

package proc

// Forked returns false: a forked child is not recognised here, and shares no memory with others.
func Forked() bool { return false }

// Parent is what Forked would look at: 1.
func Parent() *uint32 { return &parent }

var parent uint32 = 1

// HaltFork does nothing.
func HaltFork() {}
