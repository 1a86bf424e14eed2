// The C interface of goccl's shim over SYCL (xpu/shim), which package xpu opens at run time: SYCL itself is C++, and
// its library has no C interface. All is host code, so any C++ compiler builds it.
#ifndef GXPU_H
#define GXPU_H

#include <stddef.h>
#include <stdint.h>

#define GXPU_ABI 1 // of what follows; the shim returns it

// What a device is.
struct gxpu_device {
	char name[128];
	char backend[32]; // "level_zero", "opencl"
	char pci[32];     // "0000:3a:00.0"; "" where it is not told
	uint64_t memory;  // bytes
	uint64_t free;    // 0: not told
	int32_t gpu;      // 1, or 0 for a CPU
	int32_t units;    // compute units
};
enum { GXPU_DEVICE, GXPU_HOST, GXPU_SHARED, GXPU_UNKNOWN }; // kinds of memory
enum { GXPU_IN_ORDER = 0, GXPU_TIMING = 1 };                // flags of a queue

// X(return, name, parameters). What returns int returns 0, or 1 and leaves a text for error, on the same thread.
// Devices are numbers from 0; a queue is a sycl::queue *, an event a pointer of the shim's own.
#define GXPU_FUNCS(X) \
	X(int, abi, (void)) \
	X(const char *, error, (void)) \
	X(int, device_count, (int *)) \
	X(int, device_get, (int, struct gxpu_device *)) \
	X(int, queue_new, (int, int, void **)) \
	X(int, queue_free, (void *)) \
	X(int, queue_wait, (void *)) \
	X(int, queue_empty, (void *, int *)) \
	X(int, queue_after, (void *, void *)) /* queue, event */ \
	X(int, mem_new, (int, int, size_t, void **)) /* device, kind, bytes */ \
	X(int, mem_free, (int, void *)) \
	X(int, mem_kind, (int, const void *, int *)) \
	X(int, copy, (void *, void *, const void *, size_t)) /* queue, dst, src, bytes; it waits */ \
	X(int, copy_async, (void *, void *, const void *, size_t)) \
	X(int, set_async, (void *, void *, int, size_t)) \
	X(int, event_new, (void **)) \
	X(int, event_free, (void *)) \
	X(int, event_record, (void *, void *)) /* event, queue */ \
	X(int, event_done, (void *, int *)) \
	X(int, event_wait, (void *)) \
	X(int, event_since, (void *, void *, double *)) /* end, start, seconds; of queues with GXPU_TIMING */

#define GXPU_DECL(ret, name, params) ret (*name) params;
typedef struct { GXPU_FUNCS(GXPU_DECL) } gxpu;

#endif
