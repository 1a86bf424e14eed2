package cpu

import (
	"sync"
	"unsafe"
)

// memories are the slices made by MakeMemory and not freed yet, by address: what a
// process has one of.
var memories = struct {
	sync.Mutex
	m map[unsafe.Pointer]memory
}{m: map[unsafe.Pointer]memory{}}

type memory struct {
	mem  []byte
	free func()
}

// MakeMemory returns n bytes, all zero, that all ranks of this host can map. They
// outlive the Comm and the job.
func (c *Comm) MakeMemory(n int) ([]byte, error) {
	h := c.site.host
	mem, free := aligned(n), func() {}
	if h.shared() {
		off, err := h.alloc(n)
		if err != nil {
			return nil, err
		}
		fd := h.fd
		if mem, err = mapRegion(fd, off, n); err != nil {
			h.free(off, n)
			return nil, err
		}
		whole := mem
		free = func() { discard(whole) }
	}
	memories.Lock()
	defer memories.Unlock()
	memories.m[unsafe.Pointer(&mem[0])] = memory{mem, free}
	return mem, nil
}

// FreeMemory frees what MakeMemory returned; other addresses it does not know.
func FreeMemory(p unsafe.Pointer) {
	memories.Lock()
	m, ok := memories.m[p]
	delete(memories.m, p)
	memories.Unlock()
	if ok {
		m.free()
	}
}
