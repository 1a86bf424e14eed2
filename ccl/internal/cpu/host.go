package cpu

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	inject "github.com/goccl/goccl/ccl/internal/fault"
)

// host is the memory that the ranks of one host share, cut into regions that are
// never handed out twice, so that fresh memory is always zero. Ranks of one
// process share Go memory; several processes share one memfd, which has no name
// that could be left behind, and which every process maps region by region.
type host struct {
	fd   int // of the memfd; -1: Go memory
	head *header
	mu   sync.Mutex
	maps map[uint64]*mapping
}

type mapping struct {
	mem  []byte
	refs int
}

// errNoSpace is what a test has injected.
var errNoSpace = errors.New("shared memory: no space left on this host")

// header is the first region of a memfd.
type header struct {
	next   atomic.Uint64 // the first offset not handed out
	world  atomic.Uint64 // the region of the job's first Comm
	pulses atomic.Uint64 // the table of pulses
	whole  atomic.Uint64 // the most bytes of an AllReduce of two ranks that lie in the slots
	_      [96]byte
	cores  [16]atomic.Uint64 // one bit for each processor that some rank of the host may run on
	log    eventLog
	board  statusLog
}

const (
	headerBytes = 64 << 10 // whole pages, whatever their size
	memfdBytes  = 1 << 40  // only what regions are made of takes memory
)

var page = os.Getpagesize()

// pages is n bytes in whole pages.
func pages(n int) uint64 { return uint64(n+page-1) &^ uint64(page-1) }

var _ [headerBytes - unsafe.Sizeof(header{})]byte // it fits

// newPrivateHost is the memory of a host whose ranks all live in this process.
func newPrivateHost() *host {
	h := &host{fd: -1, head: new(header), maps: map[uint64]*mapping{}}
	h.settle()
	return h
}

// settle is what the first process of a host decides for all.
func (h *host) settle() {
	h.head.whole.Store(uint64(wholeMax()))
}

// shared reports whether other processes map the host's memory.
func (h *host) shared() bool { return h.fd >= 0 }

// processors is how many the ranks of the host may run on, all together.
func (h *host) processors() int {
	n := 0
	for i := range h.head.cores {
		n += bits.OnesCount64(h.head.cores[i].Load())
	}
	return max(n, runtime.NumCPU())
}

// alloc hands out a region of n bytes, all zero, and returns its offset.
func (h *host) alloc(n int) (uint64, error) {
	size := pages(n)
	off := h.head.next.Add(size) - size
	if h.shared() {
		if inject.Cut("cpu.reserve") {
			return off, errNoSpace
		}
		return off, reserve(h.fd, off, size)
	}
	off += uint64(page) // 0 means none
	h.mu.Lock()
	h.maps[off] = &mapping{mem: aligned(n)}
	h.mu.Unlock()
	return off, nil
}

// roomForCalls makes sure that there is memory for what the calls of the n ranks of this host stage, which is taken on
// first use: too little is an error of NewComm, and not of some call.
func roomForCalls(n int) error {
	need := uint64(n * stageBytes(n))
	if left := room(); left < need {
		return noRoom(need, left)
	}
	return nil
}

func noRoom(need, left uint64) error {
	return shortage(fmt.Sprintf("shared memory: %d KiB are needed, and the limit of this process's cgroup leaves %d KiB; raise it or use fewer ranks", need>>10, left>>10))
}

// shortage says that what this process may have of the machine's memory is used up.
type shortage string

func (s shortage) Error() string { return string(s) }

func (shortage) Unwrap() error { return syscall.ENOMEM }

// aligned is n bytes of Go memory that begin at a cache line.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[skip : skip+n : skip+n]
}

// view maps n bytes of the region at off. Each view is given back by drop.
func (h *host) view(off uint64, n int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.maps[off]
	if m == nil {
		mem, err := mapRegion(h.fd, off, n)
		if err != nil {
			return nil, err
		}
		m = &mapping{mem: mem}
		h.maps[off] = m
	}
	m.refs++
	return m.mem, nil
}

// drop gives back a view; the last one of a process unmaps it.
func (h *host) drop(off uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.maps[off]
	if m == nil {
		return
	}
	if m.refs--; m.refs > 0 || !h.shared() { // Go memory has no other map to find it by
		return
	}
	delete(h.maps, off)
	unmap(m.mem)
}

// free returns the memory of a region that nobody will use again.
func (h *host) free(off uint64, n int) {
	if h.shared() {
		release(h.fd, off, pages(n))
		return
	}
	h.mu.Lock()
	delete(h.maps, off)
	h.mu.Unlock()
}

func (h *host) close() {
	if h.shared() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for off, m := range h.maps {
			unmap(m.mem)
			delete(h.maps, off)
		}
		closeFD(h.fd)
	}
}
