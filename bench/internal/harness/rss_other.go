//go:build !linux

package harness

import "runtime"

// resident is the memory that this process takes, in bytes: what Go has from the
// system, where that is all that can be asked for.
func resident() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys)
}
