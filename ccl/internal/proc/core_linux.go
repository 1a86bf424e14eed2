package proc

import (
	"math/bits"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Core is the processor on which this thread runs, -1 if that is not known.
func Core() int {
	var core uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0); errno != 0 {
		return -1
	}
	return int(core)
}

// Elsewhere moves this thread to the first processor that will do, of those on which it may run,
// and returns its number; -1 if there is none. The kernel may move it again at any time.
func Elsewhere(will func(core int) bool) int {
	// To be moved, a thread must be kept from running anywhere else for a moment. Go makes no thread
	// of a locked one, which would stay there.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var may, there unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return -1
	}
	for core := range len(may) * bits.UintSize {
		if !may.IsSet(core) || !will(core) {
			continue
		}
		there.Set(core)
		if unix.SchedSetaffinity(0, &there) != nil {
			return -1
		}
		if unix.SchedSetaffinity(0, &may) != nil { // what is allowed has just changed
			var all unix.CPUSet
			all.Fill()
			_ = unix.SchedSetaffinity(0, &all) // the kernel takes what is allowed
			return -1
		}
		return core
	}
	return -1
}
