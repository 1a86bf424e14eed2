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

// The kernel sets a bit in a word of ours when this process dies. It does so before it frees the
// process's memory, which takes long for gigabytes and delays the end of the process's sockets. A
// thread may name words that hold its number (its robust list, get_robust_list(2)); the kernel sets
// the bit in those words when the thread ends. One thread of this process has two duties: it names
// the word of this process, and it waits for the word of one other process. The kernel wakes it
// when it sets the bit.
//
// A process has such a word, and such a thread, for each job that it is in. One thread could not
// serve two jobs: a robust list has one offset from its entries to their words, which lie in the
// memory of different hosts, and a thread waits for one word. A thread that is free serves the next
// job.

// robustHead is struct robust_list_head of linux/futex.h, followed by the one entry.
type robustHead struct {
	next    uintptr
	offset  uintptr // from an entry to its word
	pending uintptr
	entry   uintptr
}

// bearers are the threads that name words: as many as this process has been in jobs at a time. The
// lock guards all their fields; it may be taken under any lock, and nothing is locked under it.
var bearers struct {
	sync.Mutex
	list []*bearer
}

// bearer is one of them.
type bearer struct {
	head *robustHead
	tid  uint32
	word *atomic.Uint32 // nil: free

	of     *atomic.Uint32 // the word of another process that the thread waits for; nil: none
	tell   Watcher        // hears when that process has ended, or taken its mark away
	change chan struct{}  // of of, from nil
}

// bearerOf is the thread that names word, or with nil one that is free; nil if there is none. The
// caller holds bearers' lock.
func bearerOf(word *atomic.Uint32) *bearer {
	for _, f := range bearers.list {
		if f.word == word {
			return f
		}
	}
	return nil
}

// MarkDeath makes the kernel set OwnerDied in word when this process dies. It returns false where
// the system forbids it. Then the end of a socket and silence still tell.
func MarkDeath(word *atomic.Uint32) bool {
	bearers.Lock()
	defer bearers.Unlock()
	f := bearerOf(nil)
	if f == nil {
		if f = startBearer(); f == nil {
			return false
		}
		bearers.list = append(bearers.list, f)
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
	bearers.Lock()
	defer bearers.Unlock()
	if f := bearerOf(word); f != nil {
		f.head.next = uintptr(unsafe.Pointer(f.head))
		f.word = nil
		word.Store(0)
		wakeFutex(word)
		f.turn(nil, nil)
	}
}

// startBearer starts a thread that names nothing yet; nil if that cannot be.
func startBearer() *bearer {
	page, err := unix.Mmap(-1, 0, syscall.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	head := (*robustHead)(unsafe.Pointer(&page[0]))
	head.next = uintptr(unsafe.Pointer(head))
	head.entry = uintptr(unsafe.Pointer(head))
	f := &bearer{head: head, change: make(chan struct{}, 1)}
	tid := make(chan uint32)
	go func() {
		runtime.LockOSThread() // for good: the thread's life is the process's
		if _, _, e := syscall.RawSyscall(syscall.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(head)),
			unsafe.Sizeof(*head)-unsafe.Sizeof(head.entry), 0); e != 0 {
			tid <- 0
			return
		}
		tid <- uint32(unix.Gettid())
		f.keepWatch()
	}()
	if f.tid = <-tid; f.tid == 0 {
		unix.Munmap(page)
		return nil
	}
	return f
}

const (
	futexWait    = 0
	futexWake    = 1
	futexWaiters = 1 << 31          // in a word: a thread waits for it
	watchAgain   = 10 * time.Second // the thread then looks again, in case it has missed a change
)

// WatchDeath calls tell.Ended once, when the process whose word is of takes its mark away or dies;
// a nil of ends the wait. It returns false where the kernel does not mark this process's own word:
// then there is no thread to wait.
func WatchDeath(own, of *atomic.Uint32, tell Watcher) bool {
	bearers.Lock()
	defer bearers.Unlock()
	f := bearerOf(own)
	if own == nil || f == nil {
		return false
	}
	if f.of != of {
		f.turn(of, tell)
	}
	return true
}

// turn makes the thread wait for another word. The caller holds bearers' lock.
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
		bearers.Lock()
		of, tell := f.of, f.tell
		if of == nil {
			bearers.Unlock()
			<-f.change
			continue
		}
		v := of.Load()
		if v == 0 || v&OwnerDied != 0 {
			f.of, f.tell = nil, nil
			bearers.Unlock()
			tell.Ended()
			continue
		}
		if v&futexWaiters == 0 && !of.CompareAndSwap(v, v|futexWaiters) {
			bearers.Unlock()
			continue
		}
		bearers.Unlock() // from here on the memory may be unmapped, which the kernel reports
		syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(of)), futexWait, uintptr(v|futexWaiters),
			uintptr(unsafe.Pointer(&again)), 0, 0)
	}
}

// wakeFutex wakes all threads that wait for word.
func wakeFutex(word *atomic.Uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}
