package shm

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadMemory copies memory of another process, process_vm_readv(2). Not a call that may block: it is
// made without telling the scheduler, which would cost more than the copy.
func ReadMemory(pid int32, dst []byte, at uint64) error {
	if len(dst) == 0 {
		return nil
	}
	local := unix.Iovec{Base: unsafe.SliceData(dst)}
	local.SetLen(len(dst))
	remote := unix.RemoteIovec{Base: uintptr(at), Len: len(dst)}
	n, _, e := syscall.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	switch {
	case e != 0:
		return e
	case int(n) != len(dst):
		return fmt.Errorf("process %d: only %d of %d bytes can be read: %w", pid, n, len(dst), unix.EFAULT)
	}
	return nil
}
