package shm

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// memories lists the pieces of the slices that MakeMemory made and that are not freed yet, in the
// order of their addresses. A process has one list. Calls read it without a lock; the lock is for
// those that change it. It may be taken under any lock, and Host.mu is taken under it.
var memories struct {
	sync.Mutex
	list atomic.Pointer[[]memory]
}

// memory is a piece of a slice. A slice is one piece, until a part of it is taken back from the other ranks.
type memory struct {
	mem   []byte
	slice *byte  // the first byte of the slice: what its pieces have in common
	host  *Host  // where other processes find it; nil if they do not
	base  Place  // of the region there, its size in bytes
	at    uint64 // where in it the piece begins
}

func (m *memory) begin() uintptr { return uintptr(unsafe.Pointer(&m.mem[0])) }
func (m *memory) end() uintptr   { return m.begin() + uintptr(len(m.mem)) }

// place is where m lies in the memory of its host.
func (m *memory) place() Range { return RangeOf(m.base.Off+m.at, pages(len(m.mem))) }

// span is where b lies, which lies in m.
func (m *memory) span(b []byte) Span {
	return Span{m.base.Off, m.base.Size, m.at + uint64(uintptr(addressOf(b))-m.begin())}
}

// MakeMemory returns n bytes, all zero, that all ranks of the host can map. They outlive h.
func MakeMemory(h *Host, n int) ([]byte, error) {
	m := memory{}
	var err error
	if h.Shared() {
		h = h.Slices()
		m.host, m.base.Size = h, uint64(n)
		if m.base.Off, err = h.Alloc(n); err != nil {
			return nil, err
		}
		if err = h.note(RangeOf(m.base.Off, pages(n))); err == nil {
			m.mem, err = mapSlice(h.fd, m.base.Off, n)
		}
		if err != nil {
			h.strike(RangeOf(m.base.Off, pages(n)))
			h.Free(m.base.Off, n)
			return nil, err
		}
	} else {
		if err = HasRoom(uint64(n)); err != nil {
			return nil, err
		}
		if m.mem, err = mapSlice(-1, 0, n); err != nil {
			return nil, err
		}
	}
	m.slice = &m.mem[0]
	changeMemories(func(list []memory) []memory {
		i, _ := slices.BinarySearchFunc(list, m.begin(), func(x memory, at uintptr) int { return cmp.Compare(x.begin(), at) })
		return slices.Insert(list, i, m)
	})
	return m.mem, nil
}

// changeMemories replaces the list.
func changeMemories(f func([]memory) []memory) {
	memories.Lock()
	defer memories.Unlock()
	var list []memory
	if p := memories.list.Load(); p != nil {
		list = slices.Clone(*p)
	}
	list = f(list)
	memories.list.Store(&list)
}

// memoryAt is the piece that all of b lies in, nil if there is none.
func memoryAt(b []byte) *memory {
	p := memories.list.Load()
	if p == nil || len(b) == 0 {
		return nil
	}
	if i := pieceOf(*p, b); i >= 0 {
		return &(*p)[i]
	}
	return nil
}

// pieceOf is the number of the piece that all of b lies in, -1 if there is none.
func pieceOf(list []memory, b []byte) int {
	at := uintptr(unsafe.Pointer(&b[0]))
	i, exact := slices.BinarySearchFunc(list, at, func(x memory, at uintptr) int { return cmp.Compare(x.begin(), at) })
	if !exact {
		i--
	}
	if i < 0 || at+uintptr(len(b)) > list[i].end() {
		return -1
	}
	return i
}

// FreeMemory frees what MakeMemory returned. It ignores other addresses.
func FreeMemory(p unsafe.Pointer) {
	var pieces []memory
	changeMemories(func(list []memory) []memory {
		return slices.DeleteFunc(list, func(m memory) bool {
			if unsafe.Pointer(m.slice) != p {
				return false
			}
			pieces = append(pieces, m)
			return true
		})
	})
	if len(pieces) == 0 {
		return
	}
	n := 0
	for _, m := range pieces {
		n += len(m.mem)
		if m.host != nil {
			m.host.strike(m.place()) // first: its place may be another process's at once
			m.host.empty(&m)
		}
	}
	unmapAll(pieces[0].mem, n)
}

// TakeBack moves b to memory in which no other process writes, and reports whether it could. It
// replaces only whole pages that belong to b alone: what lies beside b stays as it is, and where it
// is. The content of b is lost. The other ranks can map the new pages as well. The place of the old
// pages is never used again, since a rank that was stopped while it wrote there may yet go on.
func TakeBack(b []byte) bool {
	memories.Lock()
	defer memories.Unlock()
	p := memories.list.Load()
	if p == nil || len(b) == 0 {
		return true
	}
	i := pieceOf(*p, b)
	if i < 0 || (*p)[i].host == nil {
		return true // nobody else can write there
	}
	old := (*p)[i]
	from, to := old.alone(b)
	if from >= to {
		return true
	}
	fresh := old
	fresh.mem, fresh.at = old.mem[from:min(to, len(old.mem))], 0
	if !fresh.replace(to - from) {
		return false
	}
	old.host.Forget(old.base.Off+old.at+uint64(from), to-from)

	var list []memory
	list = append(list, (*p)[:i]...)
	if from > 0 {
		left := old
		left.mem = old.mem[:from:from]
		list = append(list, left)
	}
	list = append(list, fresh)
	if to < len(old.mem) {
		right := old
		right.mem, right.at = old.mem[to:], old.at+uint64(to)
		list = append(list, right)
	}
	for _, m := range list[i:] {
		if m.host != nil {
			_ = m.host.note(m.place()) // without that, the memory stays should this process be killed
		}
	}
	old.host.strike(old.place())
	list = append(list, (*p)[i+1:]...)
	memories.list.Store(&list)
	return true
}

// alone is the range of whole pages of m in which nothing but b lies, which is part of m. The range may end beyond m,
// since nothing lies in the last page behind the end of a slice.
func (m *memory) alone(b []byte) (from, to int) {
	at := int(uintptr(addressOf(b)) - m.begin())
	s := m.span(b)
	lead, tail := s.Edges(len(b))
	if lead+tail >= len(b) {
		return 0, 0
	}
	return at + lead, int(pages(at + len(b) - tail))
}
