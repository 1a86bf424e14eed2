package cpu

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	inject "github.com/goccl/goccl/ccl/internal/fault"
)

// host is the memory that the ranks of one host share, cut into regions. Fresh
// memory is always zero: what is given back is emptied before it is handed out
// again. Ranks of one process share Go memory; several processes share one memfd,
// which has no name that could be left behind, and which every process maps region
// by region.
type host struct {
	fd    int // of the memfd; -1: Go memory
	head  *header
	mu    sync.Mutex
	maps  map[place]*mapping
	spare []memoryRange // given back, and not noted in head.space yet
	over  bool          // closed
}

// place is where a region lies. Offsets are handed out again, so that only offset and size together name a region that
// a process has mapped.
type place struct{ off, size uint64 }

func placeAt(off uint64, n int) place { return place{off, pages(n)} }

type mapping struct {
	mem  []byte
	refs int
}

// errNoSpace is what a test has injected.
var errNoSpace = errors.New("shared memory: no space left on this host")

// header is the first region of a memfd.
type header struct {
	world  atomic.Uint64 // the region of the job's first Comm
	pulses atomic.Uint64 // the table of pulses
	whole  atomic.Uint64 // the most bytes of an AllReduce of two ranks that lie in the slots
	_      [96]byte
	cores  [16]atomic.Uint64 // one bit for each processor that some rank of the host may run on
	log    eventLog
	board  statusLog
	space  space
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
	h := &host{fd: -1, head: new(header), maps: map[place]*mapping{}}
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
	if !h.shared() {
		off := h.head.space.next.Add(size) - size + uint64(page) // 0 means none
		h.mu.Lock()
		h.maps[placeAt(off, n)] = &mapping{mem: aligned(n)}
		h.mu.Unlock()
		return off, nil
	}
	off, ok := h.head.space.take(size)
	if !ok {
		return 0, fmt.Errorf("shared memory: %d KiB are asked for, more than is left of the %d GiB that the ranks of a host can share; free memory or ask for less", size>>10, uint64(memfdBytes)>>30)
	}
	err := errNoSpace
	if !inject.Cut("cpu.reserve") {
		err = reserve(h.fd, off, size)
	}
	if err != nil {
		h.free(off, n)
		return 0, err
	}
	return off, nil
}

// roomForCalls makes sure that there is memory for what the calls of the n ranks of this host stage, which is taken on
// first use: too little is an error of NewComm, and not of some call.
func roomForCalls(n int) error {
	need := uint64(n * stageBytes(n))
	return hasRoom(need)
}

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
	at := placeAt(off, n)
	m := h.maps[at]
	if m == nil {
		mem, err := mapRegion(h.fd, off, int(at.size))
		if err != nil {
			return nil, err
		}
		m = &mapping{mem: mem}
		h.maps[at] = m
	}
	m.refs++
	return m.mem[:n:n], nil
}

// drop gives back a view; the last one of a process unmaps it.
func (h *host) drop(at place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.maps[at]
	if m == nil {
		return
	}
	if m.refs--; m.refs > 0 || !h.shared() { // Go memory has no other map to find it by
		return
	}
	delete(h.maps, at)
	unmap(m.mem)
}

// free returns the memory of a region that nobody will use again, and its place.
func (h *host) free(off uint64, n int) {
	if !h.shared() {
		h.mu.Lock()
		delete(h.maps, placeAt(off, n))
		h.mu.Unlock()
		return
	}
	if release(h.fd, off, pages(n)) {
		h.give(off, n)
	}
}

// forget returns the memory of a region, but not its place, since another process may still write there.
func (h *host) forget(off uint64, n int) {
	if h.shared() {
		_ = release(h.fd, off, pages(n))
	} else {
		h.free(off, n)
	}
}

// give has the place of a region handed out again, whose memory is empty.
func (h *host) give(off uint64, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	s := &h.head.space
	h.spare = append(h.spare, rangeOf(off, pages(n)))
	for last := len(h.spare) - 1; last >= 0; last-- {
		if h.spare[last] = s.give(h.spare[last]); h.spare[last] != 0 {
			break
		}
		h.spare = h.spare[:last]
	}
	s.gone.Add(1)
}

func (h *host) close() {
	if h.shared() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.over = true
		for at, m := range h.maps {
			unmap(m.mem)
			delete(h.maps, at)
		}
		closeFD(h.fd)
	}
}
