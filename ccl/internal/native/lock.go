//go:build (nccl || rccl) && cgo && linux

package native

import (
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/ordered"
)

// deviceLock is held while a communicator of a device issues calls. It is for one who seldom waits: to be unlocked
// takes a plain store, where a sync.Mutex takes an instruction of 5 ns, of the 60 that a call may cost.
type deviceLock struct{ held uint64 }

func (l *deviceLock) Lock() {
	for i := 0; !l.TryLock(); i++ {
		pause(i)
	}
}

func (l *deviceLock) TryLock() bool { return atomic.CompareAndSwapUint64(&l.held, 0, 1) }

func (l *deviceLock) Unlock() { ordered.Store(&l.held, 0) }

// tryLocker is a deviceLock or a sync.Mutex.
type tryLocker interface {
	sync.Locker
	TryLock() bool
}
