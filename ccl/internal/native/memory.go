//go:build (nccl || rccl) && cgo && linux

package native

// #include <stdlib.h>
// #include "native.h"
import "C"

import "unsafe"

// Alloc is ncclMemAlloc. NCCL has it since 2.19, RCCL since that of ROCm 6.2.
func (l *library) Alloc(device, bytes int) (addr uintptr, err error) {
	if l.t.MemAlloc == nil || l.t.MemFree == nil {
		return 0, l.lacks("ncclMemAlloc", "2.19")
	}
	c := l.cell(device)
	defer C.free(unsafe.Pointer(c))
	var p C.U
	if C.gcclMemAlloc(c, &p, C.size_t(bytes)) != C.GCCL_SUCCESS {
		return 0, l.failure(&c.fault)
	}
	return uintptr(p), nil
}

// Free is ncclMemFree.
func (l *library) Free(device int, addr uintptr) error {
	c := l.cell(device)
	defer C.free(unsafe.Pointer(c))
	if C.gcclMemFree(c, C.U(addr)) != C.GCCL_SUCCESS {
		return l.failure(&c.fault)
	}
	return nil
}

// Windows is nil where the library has ncclCommWindowRegister, which depends on its version alone.
func (l *library) Windows() error {
	if l.t.CommWindowRegister == nil || l.t.CommWindowDeregister == nil {
		return l.lacks("ncclCommWindowRegister", "2.27")
	}
	return nil
}

// Window is ncclCommWindowRegister. The library finds what is wrong on one rank before that rank meets the others
// (src/dev_runtime.cc, src/register/coll_reg.cc): they wait inside until they are aborted.
func (e *end) Window(addr uintptr, bytes int) (handle uintptr, err error) {
	if err := e.lib.Windows(); err != nil {
		return 0, err
	}
	var h C.U
	err = waits(e, func() C.int { return C.gcclWindow(e.c, C.U(addr), C.size_t(bytes), &h) })
	if err != nil {
		return 0, err // h may still be written
	}
	return uintptr(h), nil
}

// CloseWindow is ncclCommWindowDeregister, which is local.
func (e *end) CloseWindow(handle uintptr) error {
	return own(e, func() C.int { return C.gcclWindowClose(e.c, C.U(handle)) })
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
