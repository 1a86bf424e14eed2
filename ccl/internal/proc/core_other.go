//go:build !linux

package proc

// Core is -1: not known.
func Core() int { return -1 }

// Elsewhere is -1: threads are not moved.
func Elsewhere(func(core int) bool) int { return -1 }
