package shm

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/environ"
)

// Who reads another process's memory has the kernel look up every page of it, which takes as long as half of the copy
// (on a 2-core Emerald Rapids VM 256 KiB took 11.6 us, and 8.0 in huge pages; 16 MiB 1.95 ms, and 1.29). So memory that
// others read again and again is gathered in huge pages, by MADV_COLLAPSE of Linux 6.1. That takes half a millisecond
// for 2 MiB, once. To the program it makes no difference but in how much memory it has: see hugeGrown. What the kernel
// would not gather is not tried again.

// HugePages is what a Comm knows of this rank's memory that others read: by number of the huge page, in turn, that
// number<<hugeCount | KiB read, or hugeDone.
type HugePages struct{ read []uint64 }

const (
	hugeAtOnce  = 8       // that are made in a call, which is deaf meanwhile: 4 milliseconds
	hugeEntries = 4 << 10 // huge pages that are known at a time: 8 GiB's worth
	hugeMax     = 2 << 20 // the largest that are made: arm64's may have 512 MiB
	hugeCount   = 28
	hugeDone    = 1<<hugeCount - 1 // it has been made, or cannot be
)

// hugeGrown is how many bytes the memory of this process has grown by, where huge pages took in what was not there.
// Pages that were read and never written count as there: all share one of the kernel's.
var hugeGrown atomic.Int64

const hugeSpare = 8 << 20 // that it may grow by

// hugeSize is the size of huge pages, 0 if there are to be none.
var hugeSize = sync.OnceValue(func() uintptr {
	const dir = "/sys/kernel/mm/transparent_hugepage/"
	enabled, _ := os.ReadFile(dir + "enabled") // not there, or not to be read: empty
	size, _ := os.ReadFile(dir + "hpage_pmd_size")
	return hugeSizeOf(string(enabled), string(size), environ.HugePages.Get())
})

// hugeSizeOf is hugeSize by what the kernel says, whose administrator may not want any, and the user.
func hugeSizeOf(enabled, size string, wanted bool) uintptr {
	n, err := strconv.ParseUint(strings.TrimSpace(size), 10, 32)
	if err != nil || n > hugeMax || !wanted || !strings.Contains(enabled, "[always]") &&
		!strings.Contains(enabled, "[madvise]") {
		return 0
	}
	return uintptr(n)
}

// Add says that other processes are going to read b, or that what they have is going to be written
// there, as after says: the pages of b become huge once that has been said of all of them so often.
func (h *HugePages) Add(b []byte, after HugeAfter) {
	size := hugeSize()
	if size == 0 || len(b) == 0 {
		return
	}
	if h.read == nil {
		h.read = make([]uint64, hugeEntries)
	}
	at, made := uintptr(unsafe.Pointer(&b[0])), 0
	for end := at + uintptr(len(b)); at < end; {
		page := at / size
		next := min((page+1)*size, end)
		e := &h.read[page%hugeEntries]
		if *e>>hugeCount != uint64(page) {
			*e = uint64(page) << hugeCount
		}
		if seen := *e & hugeDone; seen != hugeDone {
			due := uint64(after) * uint64(size>>10)
			seen = min(seen+uint64(next-at+1023)>>10, due)
			if seen >= due && made < hugeAtOnce {
				made++
				seen = hugeDone
				collapse(page*size, size)
			}
			*e = uint64(page)<<hugeCount | seen
		}
		at = next
	}
}

// collapse makes the huge page at that address, if the kernel does, and there is memory to spare for what it takes in.
// The scheduler is told of the system call: it can take a millisecond.
func collapse(at, size uintptr) {
	var there [hugeMax / 4096]byte // by page
	if _, _, e := syscall.Syscall(unix.SYS_MINCORE, at, size, uintptr(unsafe.Pointer(&there))); e != 0 {
		return // part of it is not mapped
	}
	page, grows := os.Getpagesize(), int64(size)
	for _, p := range there[:int(size)/page] {
		grows -= int64(p&1) * int64(page)
	}
	if grows > 0 && hugeGrown.Add(grows) > hugeSpare {
		hugeGrown.Add(-grows)
		return
	}
	if _, _, e := syscall.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_COLLAPSE); e != 0 {
		hugeGrown.Add(-grows)
	}
}
