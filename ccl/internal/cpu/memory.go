package cpu

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// memories are the slices made by MakeMemory and not freed yet, in the order of their addresses: what
// a process has one of. Calls look into the list without a lock.
var memories struct {
	sync.Mutex
	list atomic.Pointer[[]memory]
}

// memory is one of them.
type memory struct {
	mem  []byte
	host *host  // whose memory it is
	off  uint64 // where, if the host is shared
}

func (m memory) begin() uintptr { return uintptr(unsafe.Pointer(&m.mem[0])) }

// MakeMemory returns n bytes, all zero, that all ranks of this host can map. They
// outlive the Comm and the job.
func (c *Comm) MakeMemory(n int) ([]byte, error) {
	m := memory{host: c.site.host}
	var err error
	if m.host.shared() {
		if m.off, err = m.host.alloc(n); err != nil {
			return nil, err
		}
		if m.mem, err = mapRegion(m.host.fd, m.off, n); err != nil {
			m.host.free(m.off, n)
			return nil, err
		}
	} else if m.mem, err = mapPrivate(n); err != nil {
		return nil, err
	}
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

// memoryAt is the memory that b lies in, all of it; ok is false if there is none.
func memoryAt(b []byte) (m memory, ok bool) {
	p := memories.list.Load()
	if p == nil || len(b) == 0 {
		return m, false
	}
	list, at := *p, uintptr(unsafe.Pointer(&b[0]))
	i, exact := slices.BinarySearchFunc(list, at, func(x memory, at uintptr) int { return cmp.Compare(x.begin(), at) })
	if !exact {
		i--
	}
	if i < 0 {
		return m, false
	}
	m = list[i]
	return m, at+uintptr(len(b)) <= m.begin()+uintptr(len(m.mem))
}

// FreeMemory frees what MakeMemory returned; other addresses it does not know.
func FreeMemory(p unsafe.Pointer) {
	var found *memory
	changeMemories(func(list []memory) []memory {
		i := slices.IndexFunc(list, func(m memory) bool { return m.begin() == uintptr(p) })
		if i < 0 {
			return list
		}
		m := list[i]
		found = &m
		return slices.Delete(list, i, i+1)
	})
	if found != nil {
		discard(found.mem)
	}
}

// takeBack makes the memory that b lies in this process's own: what other processes have mapped is no longer
// what is here. It stays usable, but is no longer shared.
func takeBack(b []byte) {
	m, ok := memoryAt(b)
	if !ok || m.host == nil || !m.host.shared() {
		return
	}
	if moveAway(m.mem) != nil {
		return // no memory for the copy: the peers will have to stop by themselves
	}
	changeMemories(func(list []memory) []memory {
		for i := range list {
			if list[i].begin() == m.begin() {
				list[i].host = nil
			}
		}
		return list
	})
}
