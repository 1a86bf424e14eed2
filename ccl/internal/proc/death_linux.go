package proc

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel sets a bit in a word of ours when this process dies. It does so before it frees the process's memory, which
// takes long for gigabytes and delays the end of the process's sockets. A thread may name words that hold its number (its
// robust list, get_robust_list(2)); the kernel sets the bit in those words when the thread ends. One thread of this
// process has two duties: it names the word of this process, and it waits for the word of one other process. The kernel
// wakes it when it sets the bit.

// robustHead is struct robust_list_head of linux/futex.h, followed by the one entry.
type robustHead struct {
	next    uintptr
	offset  uintptr // from an entry to its word
	pending uintptr
	entry   uintptr
}

// flagBearer is the thread that names the word. A process has one.
var flagBearer bearer

type bearer struct {
	sync.Mutex // guards all fields; it may be taken under any lock, and nothing is locked under it
	head       *robustHead
	tid        uint32
	word       *atomic.Uint32 // nil: free

	of     *atomic.Uint32 // the word of another process that the thread waits for; nil: none
	tell   Watcher        // hears when that process has ended, or taken its mark away
	change chan struct{}  // of of, from nil
}

// MarkDeath makes the kernel set OwnerDied in word when this process dies. It returns false where that is impossible:
// another job of this process has the mark, or the system forbids it. Then the end of a socket and silence still tell.
func MarkDeath(word *atomic.Uint32) bool {
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

// UnmarkDeath ends what MarkDeath began. It must come before word is unmapped.
func UnmarkDeath(word *atomic.Uint32) {
	f := &flagBearer
	f.Lock()
	defer f.Unlock()
	if f.word == word {
		f.head.next = uintptr(unsafe.Pointer(f.head))
		f.word = nil
		word.Store(0)
		wakeFutex(word)
		f.turn(nil, nil)
	}
}

// startBearer starts the thread. The caller holds flagBearer's lock.
func startBearer() bool {
	f := &flagBearer
	page, err := unix.Mmap(-1, 0, syscall.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	head := (*robustHead)(unsafe.Pointer(&page[0]))
	head.next = uintptr(unsafe.Pointer(head))
	head.entry = uintptr(unsafe.Pointer(head))
	f.change = make(chan struct{}, 1)
	tid := make(chan uint32)
	go func() {
		runtime.LockOSThread() // for good: the thread's life is the process's
		if _, _, e := syscall.RawSyscall(syscall.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(head)), unsafe.Sizeof(*head)-unsafe.Sizeof(head.entry), 0); e != 0 {
			tid <- 0
			return
		}
		tid <- uint32(unix.Gettid())
		f.keepWatch()
	}()
	if f.tid = <-tid; f.tid == 0 {
		unix.Munmap(page)
		return false
	}
	f.head = head
	return true
}

const (
	futexWait    = 0
	futexWake    = 1
	futexWaiters = 1 << 31          // in a word: a thread waits for it
	watchAgain   = 10 * time.Second // the thread then looks again, in case it has missed a change
)

// WatchDeath calls tell.Ended once, when the process whose word is of takes its mark away or dies; a nil of ends the wait.
// It returns false where the kernel does not mark this process's own word: then there is no thread to wait.
func WatchDeath(own, of *atomic.Uint32, tell Watcher) bool {
	f := &flagBearer
	f.Lock()
	defer f.Unlock()
	if f.word == nil || f.word != own {
		return false
	}
	if f.of != of {
		f.turn(of, tell)
	}
	return true
}

// turn makes the thread wait for another word. The caller holds f.
func (f *bearer) turn(of *atomic.Uint32, tell Watcher) {
	old := f.of
	f.of, f.tell = of, tell
	if old != nil {
		wakeFutex(old)
	}
	select {
	case f.change <- struct{}{}:
	default:
	}
}

// keepWatch is what the thread does until the process ends.
func (f *bearer) keepWatch() {
	again := unix.NsecToTimespec(int64(watchAgain))
	for {
		f.Lock()
		of, tell := f.of, f.tell
		if of == nil {
			f.Unlock()
			<-f.change
			continue
		}
		v := of.Load()
		if v == 0 || v&OwnerDied != 0 {
			f.of, f.tell = nil, nil
			f.Unlock()
			tell.Ended()
			continue
		}
		if v&futexWaiters == 0 && !of.CompareAndSwap(v, v|futexWaiters) {
			f.Unlock()
			continue
		}
		f.Unlock() // from here on the memory may be unmapped, which the kernel reports
		syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(of)), futexWait, uintptr(v|futexWaiters), uintptr(unsafe.Pointer(&again)), 0, 0)
	}
}

// wakeFutex wakes all threads that wait for word.
func wakeFutex(word *atomic.Uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}
