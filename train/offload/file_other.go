//go:build !linux

package offload

const directFlag = 0

// Reserve makes the file as long as that: a disk that is full may be found by a write alone.
func (l *local) Reserve(n int64) error { return l.Truncate(n) }

// Drop does nothing: there is no portable call.
func (l *local) Drop(int64, int64) error { return nil }
