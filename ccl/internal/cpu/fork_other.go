//go:build !linux

package cpu

// Forked is false: a forked child is not recognised here, and shares no memory with others.
func Forked() bool { return false }

func rest() {}
