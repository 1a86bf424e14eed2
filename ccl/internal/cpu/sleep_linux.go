package cpu

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepWhile blocks this thread while the lower half of word is that of v, at most for limit if it is positive, until
// wakeSleeper is called for it, and now and then for nothing. The kernel compares the word before it sleeps, so a store
// and wakeSleeper after it are never missed.
func sleepWhile(word *atomic.Uint64, v uint64, limit time.Duration) {
	var until unix.Timespec
	timeout := (*unix.Timespec)(nil)
	if limit > 0 {
		until = unix.NsecToTimespec(int64(limit))
		timeout = &until
	}
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(lowerHalf(word))), futexWait, uintptr(uint32(v)), uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// wakeSleeper wakes whoever sleeps while word is as it was; no word need be there.
func wakeSleeper(word *atomic.Uint64) { wakeFutex(lowerHalf(word)) }

// lowerHalf is where the lower 32 bits of word are, on the little-endian processors that Linux's ranks have.
func lowerHalf(word *atomic.Uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(word)) }
