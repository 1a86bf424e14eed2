//go:build !linux

package proc

// Runnable is -1: not known.
func Runnable() int { return -1 }
