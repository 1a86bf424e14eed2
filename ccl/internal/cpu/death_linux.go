package cpu

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

// The kernel raises a flag for us when a process dies, before it frees the process's
// memory, which for gigabytes takes long and delays the end of its sockets: a thread
// may name words that hold its number (its robust list, get_robust_list(2)), and in
// those the kernel sets a bit when the thread ends. One thread of this process does
// nothing else than name the word of this process in its host's memory, and wait for
// the word of one other process: the kernel wakes it as it sets the bit. All processes look at
// all words now and then.

// robustHead is struct robust_list_head of linux/futex.h, followed by the one entry.
type robustHead struct {
	next    uintptr
	offset  uintptr // from an entry to its word
	pending uintptr
	entry   uintptr
}

// flagBearer is the thread that names the word: what a process has one of.
var flagBearer bearer

type bearer struct {
	sync.Mutex
	head *robustHead
	tid  uint32
	word *atomic.Uint32 // nil: free

	of     *atomic.Uint32 // the word of another process that the thread waits for; nil: none
	tell   *job           // is roused when that process has ended, or taken its flag down
	change chan struct{}  // of of, from nil
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
		wakeFutex(word)
		f.turn(nil, nil)
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
	futexWaiters = 1 << 31          // in a word: somebody waits for it
	watchAgain   = 10 * time.Second // after which the thread looks what it is to wait for, should it have missed that
)

// watchFlag has tell roused when the process whose word is of takes its flag down or dies; a nil of ends that. It is false
// where this process, whose word is own, does not bear its flag: there is no thread to wait then.
func watchFlag(own, of *atomic.Uint32, tell *job) bool {
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

// turn has the thread wait for another word. f is locked.
func (f *bearer) turn(of *atomic.Uint32, tell *job) {
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

// keepWatch is the thread's life.
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
		if v == 0 || v&ownerDied != 0 {
			f.of, f.tell = nil, nil
			f.Unlock()
			tell.rouse()
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
