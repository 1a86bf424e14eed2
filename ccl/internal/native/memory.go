//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import "unsafe"

// Alloc is ncclMemAlloc, and release ncclMemFree. NCCL has it since 2.19, RCCL since that of ROCm 6.2.
func (e *end) Alloc(bytes int) (addr uintptr, release func() error, err error) {
	l, device := e.lib, e.group.Device // the memory outlives e
	if l.t.MemAlloc == nil || l.t.MemFree == nil {
		return 0, nil, l.lacks("ncclMemAlloc", "2.19")
	}
	c := l.cell(device)
	defer C.free(unsafe.Pointer(c))
	var p C.U
	if C.gcclMemAlloc(c, &p, C.size_t(bytes)) != C.GCCL_SUCCESS {
		return 0, nil, l.failure(&c.fault)
	}
	return uintptr(p), func() error { return l.free(device, uintptr(p)) }, nil
}

// free is ncclMemFree.
func (l *library) free(device int, addr uintptr) error {
	c := l.cell(device)
	defer C.free(unsafe.Pointer(c))
	if C.gcclMemFree(c, C.U(addr)) != C.GCCL_SUCCESS {
		return l.failure(&c.fault)
	}
	return nil
}

// windows is nil where the library has ncclCommWindowRegister, which depends on its version alone.
func (l *library) windows() error {
	if l.t.CommWindowRegister == nil || l.t.CommWindowDeregister == nil {
		return l.lacks("ncclCommWindowRegister", "2.27")
	}
	return nil
}

// Window is ncclCommWindowRegister. The library finds what is wrong on one rank before that rank
// meets the others (src/dev_runtime.cc, src/register/coll_reg.cc): they wait inside until they are
// aborted. Release is ncclCommWindowDeregister.
func (e *end) Window(addr uintptr, bytes int) (release func() error, err error) {
	if err := e.lib.windows(); err != nil {
		return nil, err
	}
	var h C.U
	err = waits(e, func() C.int { return C.gcclWindow(e.c, C.U(addr), C.size_t(bytes), &h) })
	if err != nil {
		return nil, err // h may still be written
	}
	handle := h
	if handle == 0 {
		return nil, nil
	}
	return func() error { return own(e, func() C.int { return C.gcclWindowClose(e.c, handle) }) }, nil
}

// Allocated is ncclCommMemStats.
func (e *end) Allocated() (bytes uint64, err error) {
	if e.lib.t.CommMemStats == nil {
		return 0, e.lib.lacks("ncclCommMemStats", "2.29.7")
	}
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	if e.aside.gone {
		return 0, errClosed
	}
	var n C.uint64_t
	if C.gcclAllocated(e.aside.c, &n) != C.GCCL_SUCCESS {
		return 0, e.lib.failure(&e.aside.c.fault)
	}
	return uint64(n), nil
}
