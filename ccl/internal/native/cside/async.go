//go:build cgo && linux

package cside

/*
#include "../../../../include/gccl.h"
#include "../../../../include/gdev.h"
#include <dlfcn.h>

#define FIND(name) __typeof__(find_##name) *name = (__typeof__(find_##name) *)dlsym(library, #name)
extern g_res find_ncclGetUniqueId(g_uid *), find_ncclCommInitRankConfig(g_comm *, int, g_uid, int, g_cfg *), find_ncclCommAbort(g_comm);
extern g_res find_ncclCommGetAsyncError(g_comm, g_res *), find_ncclAllReduce(const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream);
extern g_drc find_cudaSetDevice(int);

static int async_make(void *library, g_comm *c) {
	FIND(ncclGetUniqueId);
	FIND(ncclCommInitRankConfig);
	FIND(cudaSetDevice);
	g_uid id;
	struct gccl_config config = {
		.size = GCCL_CONFIG_OLD_SIZE, .magic = GCCL_CONFIG_MAGIC, .version = GCCL_CONFIG_OLD_VERSION, .blocking = 0,
		.cgaClusterSize = GCCL_UNDEF_INT, .minCTAs = GCCL_UNDEF_INT, .maxCTAs = GCCL_UNDEF_INT, .splitShare = GCCL_UNDEF_INT,
		.trafficClass = GCCL_UNDEF_INT,
	};
	if (cudaSetDevice(0) || ncclGetUniqueId(&id))
		return -1;
	return ncclCommInitRankConfig(c, 1, id, 0, &config);
}

static int async_call(void *library, g_comm c, uintptr_t stream, uintptr_t at) {
	FIND(ncclAllReduce);
	return ncclAllReduce((void *)at, (void *)at, 1, GCCL_INT32, GCCL_SUM, c, (g_stream)stream);
}

static int async_state(void *library, g_comm c) {
	FIND(ncclCommGetAsyncError);
	g_res state = -1;
	return ncclCommGetAsyncError(c, &state) ? -1 : (int)state;
}

static int async_abort(void *library, g_comm c) {
	FIND(ncclCommAbort);
	return ncclCommAbort(c);
}
*/
import "C"

// InProgress is what the library says of a call that is under way.
const InProgress = C.GCCL_IN_PROGRESS

// Async is a communicator of one rank, on device 0, that does not block: what this module makes none of.
type Async struct {
	l Library
	c C.g_comm
}

// Async makes an Async. It also returns the library's result, which is 0 for success.
func (l Library) Async() (*Async, int) {
	a := &Async{l: l}
	r := C.async_make(l.handle, &a.c)
	return a, int(r)
}

// Call issues an all-reduce of one int32 at that address, and returns what the library says.
func (a *Async) Call(stream, at uintptr) int {
	return int(C.async_call(a.l.handle, a.c, C.uintptr_t(stream), C.uintptr_t(at)))
}

// State is what has become of the last call.
func (a *Async) State() int { return int(C.async_state(a.l.handle, a.c)) }

// Abort ends and frees it.
func (a *Async) Abort() int { return int(C.async_abort(a.l.handle, a.c)) }
