//go:build !linux

package machine

// Clock is a clock that all processes of this host share, in nanoseconds, and
// whether there is one. The wall clock may be set back, so it will not do.
func Clock() (ns int64, ok bool) { return 0, false }
