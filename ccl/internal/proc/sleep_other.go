//go:build !linux

package proc

import (
	"sync/atomic"
	"time"
)

// SleepWhile does nothing: processes share memory on Linux alone, so nobody waits for another process's store here.
func SleepWhile(*atomic.Uint64, uint64, time.Duration) {}

// WakeSleeper does nothing.
func WakeSleeper(*atomic.Uint64) {}
