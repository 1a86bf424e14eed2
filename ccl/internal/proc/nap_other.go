//go:build !linux

package proc

import "time"

// Napper never sleeps: time.Sleep of these systems counts in less than milliseconds, or they have nothing better.
type Napper struct{}

// Open does nothing.
func (*Napper) Open() {}

// Nap returns false.
func (*Napper) Nap(time.Duration) bool { return false }

// Close does nothing.
func (*Napper) Close() {}
