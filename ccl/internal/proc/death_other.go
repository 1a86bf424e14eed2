//go:build !linux

package proc

import "sync/atomic"

// MarkDeath returns false: the end of a socket and silence tell of a death here.
func MarkDeath(*atomic.Uint32) bool { return false }

// WatchDeath returns false: no thread can wait for a word here.
func WatchDeath(_, _ *atomic.Uint32, _ Watcher) bool { return false }

// UnmarkDeath does nothing.
func UnmarkDeath(*atomic.Uint32) {}
