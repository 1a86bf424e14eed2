package cpu

import (
	"sync"
	"unsafe"
)

// memories are the slices made by MakeMemory and not freed yet, by address: what a
// process has one of.
var memories = struct {
	sync.Mutex
	m map[unsafe.Pointer][]byte
}{m: map[unsafe.Pointer][]byte{}}

// MakeMemory returns n bytes, all zero, that all ranks of this host can map. They
// outlive the Comm and the job.
func (c *Comm) MakeMemory(n int) ([]byte, error) {
	h := c.site.host
	var mem []byte
	var err error
	if h.shared() {
		off, err := h.alloc(n)
		if err != nil {
			return nil, err
		}
		if mem, err = mapRegion(h.fd, off, n); err != nil {
			h.free(off, n)
			return nil, err
		}
	} else if mem, err = mapPrivate(n); err != nil {
		return nil, err
	}
	memories.Lock()
	defer memories.Unlock()
	memories.m[unsafe.Pointer(&mem[0])] = mem
	return mem, nil
}

// FreeMemory frees what MakeMemory returned; other addresses it does not know.
func FreeMemory(p unsafe.Pointer) {
	memories.Lock()
	m, ok := memories.m[p]
	delete(memories.m, p)
	memories.Unlock()
	if ok {
		discard(m)
	}
}
