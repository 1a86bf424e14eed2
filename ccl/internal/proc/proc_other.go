//go:build !linux

package proc

import (
	"runtime"
	"sync/atomic"
	"time"
)

// What the engine does without on other systems than Linux.

// Core is -1: not known.
func Core() int { return -1 }

// Elsewhere is -1: threads are not moved.
func Elsewhere(func(core int) bool) int { return -1 }

// MarkDeath returns false: the end of a socket and silence tell of a death here.
func MarkDeath(*atomic.Uint32) bool { return false }

// WatchDeath returns false: no thread can wait for a word here.
func WatchDeath(_, _ *atomic.Uint32, _ Watcher) bool { return false }

// UnmarkDeath does nothing.
func UnmarkDeath(*atomic.Uint32) {}

// Forked returns false: a forked child is not recognised here, and shares no memory with others.
func Forked() bool { return false }

// Parent is what Forked would look at: 1.
func Parent() *uint32 { return &parent }

var parent uint32 = 1

// HaltFork does nothing.
func HaltFork() {}

// Napper never sleeps: time.Sleep of these systems counts in less than milliseconds, or they have nothing better.
type Napper struct{}

// Open does nothing.
func (*Napper) Open() {}

// Nap returns false.
func (*Napper) Nap(time.Duration) bool { return false }

// Close does nothing.
func (*Napper) Close() {}

// Runnable is -1: not known.
func Runnable() int { return -1 }

// SleepWhile does nothing: processes share memory on Linux alone, so nobody waits for another process's store here.
func SleepWhile(*atomic.Uint64, uint64, time.Duration) {}

// WakeSleeper does nothing.
func WakeSleeper(*atomic.Uint64) {}

// ThreadsOf returns nil.
func ThreadsOf(int) Threads { return nil }

// Namespace returns 0: no process is known by its number.
func Namespace() uint64 { return 0 }

// Uptime is 0: not known.
func Uptime() time.Duration { return 0 }

// Yield lets another goroutine run.
func Yield() { runtime.Gosched() }
