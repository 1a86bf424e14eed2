//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#define FAIL(call, result) gcclFail(e->ccl, e->comm, &e->fault, call, result)

// What is made belongs to the current device.
int gcclMemAlloc(gccl_end *e, U *addr, size_t bytes) {
	int r = gcclOn(e);
	return r ? r : FAIL("MemAlloc", e->ccl->MemAlloc((void **)addr, bytes));
}

int gcclMemFree(gccl_end *e, U addr) {
	int r = gcclOn(e);
	return r ? r : FAIL("MemFree", e->ccl->MemFree((void *)addr));
}

int gcclRegister(gccl_end *e, U addr, size_t bytes, U *handle) {
	int r = gcclOn(e);
	return r ? r : FAIL("CommRegister", e->ccl->CommRegister(e->comm, (void *)addr, bytes, (void **)handle));
}

int gcclDeregister(gccl_end *e, U handle) {
	int r = gcclOn(e);
	return r ? r : FAIL("CommDeregister", e->ccl->CommDeregister(e->comm, (void *)handle));
}

// gcclWindow waits for the other ranks. A library that makes no windows here leaves what it was given, or writes NULL
// (ncclCommWindowRegister, 2.28 and 2.27).
int gcclWindow(gccl_end *e, U addr, size_t bytes, U *handle) {
	g_win w = NULL;
	int r = gcclOn(e);
	if (!r)
		r = FAIL("CommWindowRegister", e->ccl->CommWindowRegister(e->comm, (void *)addr, bytes, &w, GCCL_WIN_COLL_SYMMETRIC));
	*handle = r ? 0 : (U)w;
	return r;
}

int gcclWindowClose(gccl_end *e, U handle) {
	int r = gcclOn(e);
	return r ? r : FAIL("CommWindowDeregister", e->ccl->CommWindowDeregister(e->comm, (g_win)handle));
}

int gcclAllocated(gccl_end *e, uint64_t *bytes) {
	int r = gcclOn(e);
	return r ? r : FAIL("CommMemStats", e->ccl->CommMemStats(e->comm, GCCL_MEM_TOTAL, bytes));
}
