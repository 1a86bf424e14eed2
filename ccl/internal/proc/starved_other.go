//go:build !linux

package proc

// ThreadsOf returns nil.
func ThreadsOf(int) Threads { return nil }

// Namespace returns 0: no process is known by its number.
func Namespace() uint64 { return 0 }
