// Package shm is the memory of a host: what the ranks of one host share, and how one process reads another's.
//
// A Host is cut into regions, which all processes of the host map by offset and size. At its
// beginning lies a header; the user of this package keeps there what every process must find first.
// MakeMemory makes slices of such memory for programs, and a Span says to other ranks where a slice
// lies. A Ring hands values to all processes. HasRoom refuses memory where taking it would have the
// kernel kill a process.
//
// Processes share memory on Linux alone. Elsewhere a Host is Go memory of one process.
//
// Locks: the list of slices first, then Host.mu, that of a job's Host before that of its slices'.
// All may be taken under any lock of the engine, and no function of this package calls back into
// it, but for the functions that its caller passes.
package shm

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/inject"
)

// Host is the memory that the ranks of one host share, cut into regions. A new region is always
// zero: what is given back is emptied before it is handed out again. Ranks of one process share Go
// memory. Several processes share one memfd, which has no name that could be left behind; each
// process maps it region by region.
type Host struct {
	fd    int // of the memfd; -1: Go memory
	own   *header
	users unsafe.Pointer // what Header returns
	mu    sync.Mutex     // guards what follows; it may be taken under any lock, and none is taken under it
	maps  map[Place]*mapping
	spare []Range // given back, and not noted in head.space yet
	over  bool    // closed

	slices *Host   // where slices of its ranks lie: see Slices
	jobs   int     // of such a Host: how many Hosts have it
	ledger *ledger // of such a Host: what this process has of it
}

// Place says where a region lies. Offsets are handed out again, so only offset and size together name a region that a
// process has mapped.
type Place struct{ Off, Size uint64 }

// PlaceAt returns the place of a region of n bytes at off.
func PlaceAt(off uint64, n int) Place { return Place{off, pages(n)} }

type mapping struct {
	mem  []byte
	refs int
}

// errNoSpace is an error that a test injects.
var errNoSpace = errors.New("shared memory: no space left on this host")

// header is the first region of a memfd: what package shm keeps there, and from headerOwn on what its users do.
type header struct {
	cores [16]atomic.Uint64 // one bit for each processor that some rank of the host may run on
	space space
}

const (
	// HeaderBytes is how much of the header is for users.
	HeaderBytes = headerBytes - headerOwn

	headerBytes = 64 << 10 // whole pages, whatever their size
	headerOwn   = 8 << 10
	memfdBytes  = 1 << 40 // only what regions are made of takes memory
)

// Page is the size of a page of memory.
var Page = os.Getpagesize()

// pages returns n bytes rounded up to whole pages.
func pages(n int) uint64 { return uint64(n+Page-1) &^ uint64(Page-1) }

var _ [headerOwn - unsafe.Sizeof(header{})]byte // it fits

// NewPrivate makes the memory of a host whose ranks all live in this process: Go memory. Its user
// keeps so many bytes in the header.
func NewPrivate(users int) *Host {
	return &Host{fd: -1, own: new(header), users: unsafe.Pointer(unsafe.SliceData(Aligned(users))),
		maps: map[Place]*mapping{}}
}

// Header returns HeaderBytes that all processes of the host see, zero at first, at a cache line: what the user of this
// package keeps there has no pointers.
func (h *Host) Header() unsafe.Pointer { return h.users }

// Descriptor returns the memfd, for another process to open; -1 if there is none. It belongs to h.
func (h *Host) Descriptor() int { return h.fd }

// Returned counts the regions that have been given back, by any process.
func (h *Host) Returned() uint64 { return h.own.space.gone.Load() }

// Unused lists the ranges that no region lies in now, in no order.
func (h *Host) Unused() []Range { return h.own.space.ranges() }

// Shared reports whether other processes map the host's memory. No Host shares none.
func (h *Host) Shared() bool { return h != nil && h.fd >= 0 }

// Processors counts the processors that the ranks of the host may run on, all together.
func (h *Host) Processors() int {
	n := 0
	for i := range h.own.cores {
		n += bits.OnesCount64(h.own.cores[i].Load())
	}
	return max(n, runtime.NumCPU())
}

// Alloc hands out a region of n bytes, all zero, and returns its offset.
func (h *Host) Alloc(n int) (uint64, error) {
	size := pages(n)
	if !h.Shared() {
		off := h.own.space.next.Add(size) - size + uint64(Page) // 0 means none
		if inject.Wrong("shm.alloc") {                          // where another region lies
			off = uint64(Page)
		}
		h.mu.Lock()
		h.maps[PlaceAt(off, n)] = &mapping{mem: Aligned(n)}
		h.mu.Unlock()
		return off, nil
	}
	off, ok := h.own.space.take(size)
	if !ok {
		return 0, fmt.Errorf("shared memory: %d KiB were requested, more than is left of the %d GiB that the ranks of a host can share; free memory or request less", size>>10, uint64(memfdBytes)>>30)
	}
	err := errNoSpace
	if !inject.Cut("cpu.reserve") {
		err = reserve(h.fd, off, size)
	}
	if err != nil {
		h.Free(off, n)
		return 0, err
	}
	return off, nil
}

// Aligned returns n bytes of Go memory that begin at a cache line.
func Aligned(n int) []byte {
	b := make([]byte, n+63)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[skip : skip+n : skip+n]
}

// View maps n bytes of the region at off. Each view is given back by drop.
func (h *Host) View(off uint64, n int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := PlaceAt(off, n)
	m := h.maps[at]
	if m == nil && !h.Shared() {
		return nil, fmt.Errorf("shared memory: no region of %d KiB lies at offset %d of this host's memory", at.Size>>10, off)
	}
	if m == nil {
		mem, err := mapRegion(h.fd, off, int(at.Size))
		if err != nil {
			return nil, err
		}
		m = &mapping{mem: mem}
		h.maps[at] = m
	}
	m.refs++
	return m.mem[:n:n], nil
}

// Drop gives back a view; the last one of a process unmaps it.
func (h *Host) Drop(at Place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.maps[at]
	if m == nil {
		return
	}
	if m.refs--; m.refs > 0 || !h.Shared() { // Go memory has no other map to find it by
		return
	}
	delete(h.maps, at)
	unmap(m.mem)
}

// Free returns the memory of a region that nobody will use again, and its place.
func (h *Host) Free(off uint64, n int) {
	if !h.Shared() {
		h.mu.Lock()
		delete(h.maps, PlaceAt(off, n))
		h.mu.Unlock()
		return
	}
	if release(h.fd, off, pages(n)) {
		h.give(off, n)
	}
}

// Forget returns the memory of a region, but not its place, since another process may still write there.
func (h *Host) Forget(off uint64, n int) {
	if !h.Shared() {
		h.Free(off, n)
		return
	}
	const step = 64 << 20 // so that what needs the lock waits for some milliseconds
	for left := pages(n); left > 0; {
		part := min(left, step)
		h.mu.Lock()
		if !h.over { // else the descriptor is another's
			_ = release(h.fd, off, part)
		}
		h.mu.Unlock()
		off, left = off+part, left-part
	}
}

// give has the place of a region handed out again, whose memory is empty.
func (h *Host) give(off uint64, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	s := &h.own.space
	h.spare = append(h.spare, RangeOf(off, pages(n)))
	for last := len(h.spare) - 1; last >= 0; last-- {
		if h.spare[last] = s.give(h.spare[last]); h.spare[last] != 0 {
			break
		}
		h.spare = h.spare[:last]
	}
	s.gone.Add(1)
}

// Close unmaps all regions, and closes the descriptor. Slices of MakeMemory stay.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.close()
}

// close is Close. h.mu is held.
func (h *Host) close() {
	if h.over {
		return
	}
	h.over = true
	if h.slices != nil {
		h.slices.letGo()
	}
	if !h.Shared() {
		return
	}
	for at, m := range h.maps {
		unmap(m.mem)
		delete(h.maps, at)
	}
	CloseFD(h.fd)
}
