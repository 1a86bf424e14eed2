package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel raises a flag for us when a process dies, before it frees the process's
// memory, which for gigabytes takes long and delays the end of its sockets: a thread
// may name words that hold its number (its robust list, get_robust_list(2)), and in
// those the kernel sets a bit when the thread ends. One thread of this process does
// nothing else than name the word of this process in its host's memory; the other
// processes look at it.

// robustHead is struct robust_list_head of linux/futex.h, followed by the one entry.
type robustHead struct {
	next    uintptr
	offset  uintptr // from an entry to its word
	pending uintptr
	entry   uintptr
}

// flagBearer is the thread that names the word: what a process has one of.
var flagBearer struct {
	sync.Mutex
	head *robustHead
	tid  uint32
	word *atomic.Uint32 // nil: free
}

// bearFlag has word raised when this process dies. It is false where that cannot be:
// another job of this process has the flag, or the system forbids it. Then the end
// of a socket and silence still tell.
func bearFlag(word *atomic.Uint32) bool {
	f := &flagBearer
	f.Lock()
	defer f.Unlock()
	if f.word != nil || f.head == nil && !startBearer() {
		return false
	}
	word.Store(f.tid)
	entry := uintptr(unsafe.Pointer(&f.head.entry))
	f.head.offset = uintptr(unsafe.Pointer(word)) - entry
	f.head.next = entry
	f.word = word
	return true
}

// dropFlag ends what bearFlag began, before word is unmapped.
func dropFlag(word *atomic.Uint32) {
	f := &flagBearer
	f.Lock()
	defer f.Unlock()
	if f.word == word {
		f.head.next = uintptr(unsafe.Pointer(f.head))
		f.word = nil
		word.Store(0)
	}
}

// startBearer starts the thread. flagBearer is locked.
func startBearer() bool {
	f := &flagBearer
	page, err := unix.Mmap(-1, 0, syscall.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	head := (*robustHead)(unsafe.Pointer(&page[0]))
	head.next = uintptr(unsafe.Pointer(head))
	head.entry = uintptr(unsafe.Pointer(head))
	tid := make(chan uint32)
	go func() {
		runtime.LockOSThread() // for good: the thread's life is the process's
		if _, _, e := syscall.RawSyscall(syscall.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(head)), unsafe.Sizeof(*head)-unsafe.Sizeof(head.entry), 0); e != 0 {
			tid <- 0
			return
		}
		tid <- uint32(unix.Gettid())
		select {}
	}()
	if f.tid = <-tid; f.tid == 0 {
		unix.Munmap(page)
		return false
	}
	f.head = head
	return true
}
