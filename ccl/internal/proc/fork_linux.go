package proc

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forkMark points to 1 in the process that made it and to 0 in a child that was forked without
// exec. It lies in a page that the kernel empties in the child (madvise(2), MADV_WIPEONFORK, since
// Linux 4.14; older kernels recognise no child). Reading it takes two loads, where getpid(2) is a
// system call.
var forkMark = newForkMark()

func newForkMark() *uint32 {
	mark := new(uint32)
	if mem, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
		if unix.Madvise(mem, unix.MADV_WIPEONFORK) == nil {
			mark = (*uint32)(unsafe.Pointer(&mem[0]))
		} else {
			_ = unix.Munmap(mem)
		}
	}
	*mark = 1
	return mark
}

// Parent is what Forked looks at: 1, and 0 in a child.
func Parent() *uint32 { return forkMark }

// Forked reports whether this process was forked, without exec, from the process of the rank. Such
// a child has none of the memory that ranks share, and the others would take what it sends for the
// rank's.
func Forked() bool { return *forkMark == 0 }

// HaltFork blocks for ever in a forked child. There the goroutine is a copy, and its original goes on in the parent.
func HaltFork() {
	if Forked() {
		select {}
	}
}
