//go:build !linux

package proc

import "time"

// Uptime is 0: not known.
func Uptime() time.Duration { return 0 }
