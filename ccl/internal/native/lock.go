//go:build (nccl || rccl) && cgo && linux

package native

import (
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/ordered"
)

// callLock is held while a call of the rank's own is inside the library. It is for one who seldom waits: to be unlocked
// takes a plain store, where a sync.Mutex takes an instruction of 5 ns, of the 60 that a call may cost.
type callLock struct{ held uint64 }

func (l *callLock) TryLock() bool { return atomic.CompareAndSwapUint64(&l.held, 0, 1) }

func (l *callLock) Unlock() { ordered.Store(&l.held, 0) }

// free waits at most so long for nobody to be inside, and reports whether it has come to that. Whoever makes sure first that no other
// call begins knows then that none is under way.
func (l *callLock) free(wait time.Duration) bool {
	for until := time.Now().Add(wait); !l.TryLock(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(until) {
			return false
		}
	}
	l.Unlock()
	return true
}
