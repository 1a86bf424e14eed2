//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#define FAIL(call, result) gcclFail(e->ccl, e->comm, &e->fault, call, result)

static struct gccl_config config(int blocking) {
	return (struct gccl_config){
		sizeof(struct gccl_config), GCCL_CONFIG_MAGIC, GCCL_CONFIG_VERSION, blocking,
		GCCL_UNDEF_INT, GCCL_UNDEF_INT, GCCL_UNDEF_INT, NULL, GCCL_UNDEF_INT, GCCL_UNDEF_INT,
	};
}

// The communicator is that of the current device, so the two calls are one for Go, which may move
// the goroutine to another thread between two.
int gcclInit(gccl_end *e, const g_uid *id, int blocking) {
	int r = gcclOn(e);
	if (r)
		return r;
	struct gccl_config c = config(blocking);
	if (blocking >= 0)
		r = e->ccl->CommInitRankConfig(&e->comm, e->size, *id, e->rank, &c);
	else
		r = e->ccl->CommInitRank(&e->comm, e->size, *id, e->rank);
	r = gcclFail(e->ccl, NULL, &e->fault, "CommInitRank", r);
	return r;
}

// Of a null communicator NCCL 2.23 and 2.24 read the fields, so it is looked at here.
int gcclSplit(gccl_end *parent, gccl_end *e, int color, int key) {
	int r = parent->comm ? gcclOn(e) : FAIL("CommSplit", GCCL_INVALID_ARGUMENT);
	if (r)
		return r;
	struct gccl_config c = config(0);
	r = parent->ccl->CommSplit(parent->comm, color < 0 ? GCCL_SPLIT_NOCOLOR : color, key, &e->comm, &c);
	r = gcclFail(e->ccl, parent->comm, &e->fault, "CommSplit", r);
	return r;
}

int gcclShrink(gccl_end *parent, gccl_end *e, int *lost, int n) {
	int r = parent->comm ? gcclOn(e) : FAIL("CommShrink", GCCL_INVALID_ARGUMENT);
	if (r)
		return r;
	struct gccl_config c = config(0);
	r = parent->ccl->CommShrink(parent->comm, lost, n, &e->comm, &c, GCCL_SHRINK_ABORT);
	r = gcclFail(e->ccl, parent->comm, &e->fault, "CommShrink", r);
	return r;
}

int gcclAsync(gccl_end *e) {
	int state = GCCL_SUCCESS, r = e->ccl->CommGetAsyncError(e->comm, &state);
	return FAIL("CommGetAsyncError", r ? r : state);
}

int gcclFinalize(gccl_end *e) { return e->ccl->CommFinalize ? FAIL("CommFinalize", e->ccl->CommFinalize(e->comm)) : 0; }
int gcclDestroy(gccl_end *e) { return gcclFail(e->ccl, NULL, &e->fault, "CommDestroy", e->ccl->CommDestroy(e->comm)); }
int gcclAbort(gccl_end *e) { return gcclFail(e->ccl, NULL, &e->fault, "CommAbort", e->ccl->CommAbort(e->comm)); }

int gcclMemAlloc(gccl_end *e, U *addr, size_t bytes) {
	int r = gcclOn(e);
	if (r)
		return r;
	r = FAIL("MemAlloc", e->ccl->MemAlloc((void **)addr, bytes));
	return r;
}

int gcclMemFree(gccl_end *e, U addr) {
	int r = gcclOn(e);
	if (r)
		return r;
	r = FAIL("MemFree", e->ccl->MemFree((void *)addr));
	return r;
}

int gcclRegister(gccl_end *e, U addr, size_t bytes, U *handle) {
	return FAIL("CommRegister", e->ccl->CommRegister(e->comm, (void *)addr, bytes, (void **)handle));
}

int gcclDeregister(gccl_end *e, U handle) {
	return FAIL("CommDeregister", e->ccl->CommDeregister(e->comm, (void *)handle));
}
