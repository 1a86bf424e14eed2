//go:build !linux

package machine

import "time"

// Waited is how long the threads of this process have run, and how long they were ready to run and had no processor: 0, 0
// where the kernel does not tell.
func Waited(string) (ran, waited time.Duration) { return 0, 0 }
