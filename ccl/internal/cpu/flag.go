package cpu

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/ordered"
)

// Flag is set and cleared by one goroutine and read by others.
type Flag struct{ v uint64 }

// Set sets it before anything that follows is read.
func (f *Flag) Set() { atomic.StoreUint64(&f.v, 1) }

// Clear clears it after all that was written before.
func (f *Flag) Clear() { ordered.Store(&f.v, 0) }

// Load reports whether it is set.
func (f *Flag) Load() bool { return atomic.LoadUint64(&f.v) != 0 }
