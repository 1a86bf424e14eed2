// What the Go files of this package call in C. A device address, a stream and a communicator cross
// as uintptr_t: they are no Go pointers, and cgo does not look at them (34 instead of 69 ns).
#ifndef NATIVE_H
#define NATIVE_H

#include "../../../include/gccl.h"
#include "../../../include/gdev.h"

typedef uintptr_t U;

// gccl_fault is a call that failed. It is filled in the C call in which it happened, since error
// texts belong to the thread, or to nobody (ncclGetLastError is one buffer for all).
typedef struct {
	int result, device; // device: the call was the device runtime's
	char call[48], text[400];
} gccl_fault;

// gccl_hints are engine.Hints, with 0 for what is left to the library, and the communicator's name. The texts live as long as
// the communicator.
typedef struct {
	int minCTAs, maxCTAs, CTAPolicy, trafficClass, launchOrder;
	char *netName, *commName;
} gccl_hints;

// gccl_end is one rank's end of a communicator. Go has four of each, each with its own fault, so that questions,
// marks and times need not wait for a call of the rank's own: see end.
typedef struct {
	const gccl_table *ccl;
	const gdev *dev;    // internal/gpu's
	const char *prefix; // of its functions
	g_comm comm;
	int device, rank, size;
	int asks;           // before each call, which device the thread has: see on, compose.c
	void *scratch;      // device memory, for what Barrier reduces
	void **copies;      // of the sources of calls in place under way, see inplace.c
	int ncopies, capcopies;
	struct gccl_scaled *scaled; // the library's operators for factors, see scaled.c
	int nscaled;
	signed char types[24]; // the library's numbers of internal/op's types, -1 where it has none
	unsigned char widths[24]; // and the bytes of an element
	struct gccl_call *calls;   // room for those of an Issue
	int capcalls;
	gccl_hints hints;
	gccl_fault fault;   // of the last call that failed
} gccl_end;

// The kinds of calls, and the first operator that scales, of internal/op. issue.go does not compile where they differ.
enum {
	ALL_REDUCE = 1, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, BROADCAST, ALL_GATHER, ALL_GATHER_V, GATHER, GATHER_V,
	SCATTER, SCATTER_V, ALL_TO_ALL, ALL_TO_ALL_V, SEND, RECV, SEND_RECV, BARRIER, SCALED = 16
};

// gccl_head is op.Head, where Go has it. issue.go does not compile where they differ.
typedef struct {
	uint64_t place, count;
	int64_t start, end;
	uint64_t seq;
	int32_t root;
	uint32_t hash;
	uint8_t kind, type, op, state;
	float times;
	U dst, src;
	intptr_t dstN, srcN, to;
	unsigned char factor[8]; // of an operator that scales, as an element
} gccl_head;

// gccl_call is a call in the library's terms. What it has no type for is moved as bytes, scale to an element.
typedef struct gccl_call {
	int kind, type, op, root, to;
	size_t width, scale; // bytes of an element of type; how many of them an element of the caller's is
	size_t count, sent;
	const intptr_t *dc, *sc; // elements of the caller's, by rank
	U dst, src;
	unsigned char factor[8];
} gccl_call;

enum { GCCL_SCALED = -1 }; // op of a call that multiplies by factor, before gcclScaled

// load.c. gcclFill returns 0 where the library lacks a required function, whose name it writes.
int gcclFill(gccl_table *t, U handle, char *missing, size_t cap);
int gcclVersion(const gccl_table *t, int *version, gccl_fault *f);
int gcclUniqueId(const gccl_table *t, g_uid *id, gccl_fault *f);

// fault.c
int gcclFail(const gccl_table *t, g_comm comm, gccl_fault *f, const char *call, int result);
int gcclDeviceFail(gccl_end *e, const char *call, int result);

// device.c. A call that depends on the thread's current device sets it in the same C call: a goroutine
// changes threads between two.
int gcclAlloc(gccl_end *e, U *addr, size_t bytes);
int gcclFree(gccl_end *e, U addr);
int gcclStream(gccl_end *e, U *stream);
int gcclStreamFree(gccl_end *e, U stream);
int gcclCopy(gccl_end *e, U dst, U src, size_t bytes, int kind, U stream);
int gcclEvent(gccl_end *e, U *event);
int gcclEventFree(gccl_end *e, U event);
int gcclRecord(gccl_end *e, U event, U stream, int *capturing); // event 0: only whether stream is being captured
int gcclPassed(gccl_end *e, U event);
// gcclSpan records the first or the second of two events, which it makes first where they are 0, and returns whether it has.
int gcclSpan(gccl_end *e, U *events, int which, U stream);
int gcclElapsed(gccl_end *e, U before, U after, float *ms);
int gcclOn(gccl_end *e);
int gcclCapability(gccl_end *e, int *level); // CUDA's, as 80 of 8.0; 0 where the runtime does not say

// comm.c. The handle is in e->comm. The communicator is one that blocks; version: the library's, 0 where it has no
// configurations.
int gcclInit(gccl_end *e, g_uid *ids, int n, int version); // n ids, of which there is one but for many ranks
int gcclShrink(gccl_end *parent, gccl_end *e, int version, int *lost, int n);
int gcclAsync(gccl_end *e);
int gcclAllocated(gccl_end *e, uint64_t *bytes);
int gcclFinalize(gccl_end *e);
int gcclDestroy(gccl_end *e);
int gcclAbort(gccl_end *e);
int gcclRevoke(gccl_end *e);
int gcclRegister(gccl_end *e, U addr, size_t bytes, U *handle);
int gcclDeregister(gccl_end *e, U handle);
int gcclWindow(gccl_end *e, U addr, size_t bytes, U *handle); // handle 0: the library makes none here
int gcclWindowClose(gccl_end *e, U handle);

// memory.c. An end of these needs the tables and the device alone.
int gcclMemAlloc(gccl_end *e, U *addr, size_t bytes);
int gcclMemFree(gccl_end *e, U addr);

// compose.c. Returns what the library answered, or -1 for the device's. The end, a gccl_end, crosses as U, as addresses do. counts
// has the counts by rank of all calls that have them, one after the other: of an all-to-all first those that come.
int gcclIssue(U end, const gccl_head *calls, int n, const intptr_t *counts, U stream);

// scaled.c gives calls that multiply the library's operator for their factor.
int gcclScaled(gccl_end *e, gccl_call *calls, int n);

// inplace.c
int gcclCopySources(gccl_end *e, gccl_call *calls, int n, g_stream stream);
int gcclFreeSources(gccl_end *e, g_stream stream);

#endif
