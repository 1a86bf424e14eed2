package machine

import "golang.org/x/sys/unix"

// Clock is a clock that all processes of this host share, in nanoseconds, and
// whether there is one.
func Clock() (ns int64, ok bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano(), err == nil
}
