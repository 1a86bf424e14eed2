//go:build !linux

package cpu

import (
	"sync/atomic"
	"time"
)

// Processes share memory on Linux alone, so nobody sleeps or is woken so elsewhere.
func sleepWhile(*atomic.Uint64, uint64, time.Duration) {}
func wakeSleeper(*atomic.Uint64)                       {}
