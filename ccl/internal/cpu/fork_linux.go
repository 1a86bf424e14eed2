package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// forkMark is not 0, but in a child that was forked without exec: it lies in a page that the kernel empties there
// (madvise(2), MADV_WIPEONFORK, since Linux 4.14; before, no child is recognised). To ask is two loads, where
// getpid(2) is a system call.
var forkMark = newForkMark()

func newForkMark() *uint32 {
	mark := new(uint32)
	if mem, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
		if unix.Madvise(mem, unix.MADV_WIPEONFORK) == nil {
			mark = (*uint32)(unsafe.Pointer(&mem[0]))
		} else {
			unmap(mem)
		}
	}
	*mark = 1
	return mark
}

// Forked reports whether this process is a child that was forked, without exec, from the one that is the rank. It has
// none of the memory that ranks share, and what it sent would pass for the rank's.
func Forked() bool { return *forkMark == 0 }

// rest ends what was not begun in this process: in a forked child, the copy of a goroutine whose original goes on in
// the parent.
func rest() {
	if Forked() {
		select {}
	}
}
