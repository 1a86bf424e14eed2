package proc

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SleepWhile blocks this thread while the lower half of word equals that of v, until WakeSleeper is called for word or
// limit is over, if that is positive. It may also return early for no reason. The kernel compares the word before it
// sleeps, so a store with WakeSleeper after it is never missed.
func SleepWhile(word *atomic.Uint64, v uint64, limit time.Duration) {
	var until unix.Timespec
	timeout := (*unix.Timespec)(nil)
	if limit > 0 {
		until = unix.NsecToTimespec(int64(limit))
		timeout = &until
	}
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(lowerHalf(word))), futexWait, uintptr(uint32(v)),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// WakeSleeper wakes every thread of SleepWhile for word. The memory may be unmapped by now.
func WakeSleeper(word *atomic.Uint64) { wakeFutex(lowerHalf(word)) }

// lowerHalf returns the lower 32 bits of word, on the little-endian processors that Linux's ranks have.
func lowerHalf(word *atomic.Uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(word)) }
