package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is a time that all processes of a host agree on, and that nobody sets (clock_gettime(2),
// CLOCK_MONOTONIC). In a time namespace of its own a process has another.
func Uptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
