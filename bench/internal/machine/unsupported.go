//go:build !linux

package machine

import (
	"time"
)

// What only Linux tells.

// Clock is a clock that all processes of this host share, in nanoseconds, and
// whether there is one. The wall clock may be set back, so it will not do.
func Clock() (ns int64, ok bool) { return 0, false }

// Waited is how long the threads of this process have run, and how long they were ready to run and
// had no processor: 0, 0 where the kernel does not tell.
func Waited(string) (ran, waited time.Duration) { return 0, 0 }
