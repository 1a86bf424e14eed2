package ordered

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// membarrier(2) makes all threads of this process that run pass a memory barrier.
const (
	membarrierPrivate  = 1 << 3 // MEMBARRIER_CMD_PRIVATE_EXPEDITED
	membarrierRegister = 1 << 4 // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
)

func membarrier(command uintptr) bool {
	_, _, e := syscall.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return e == 0
}

// registerFence reports whether this process may use fence: not before Linux 4.14, nor where a sandbox forbids it.
func registerFence() bool { return membarrier(membarrierRegister) && membarrier(membarrierPrivate) }

func fence() {
	for !membarrier(membarrierPrivate) { // it is short of memory for a moment
		time.Sleep(time.Millisecond)
	}
}
