//go:build linux && cgo && (nccl || rccl)

// The CUDA runtime's functions, as far as gdev.h needs them, made of the driver's: a device is its primary context, as it is for
// the runtime that NCCL brings, so both see the same memory, streams and events, and which device a thread has.
#include "cudriver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define POINTER(ret, name, params) ret(*name) params;
static struct { GCU_FUNCS(POINTER) GCU_LATER_FUNCS(POINTER) } cu; // a process has one driver

enum { MAX_DEVICES = 64 };
static u_ctx contexts[MAX_DEVICES]; // retained for good
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int ready(void) {
	static int initialised;
	pthread_mutex_lock(&lock);
	int r = initialised ? 0 : cu.Init(0);
	initialised = !r;
	pthread_mutex_unlock(&lock);
	return r;
}

static int context(int d, u_ctx *out) {
	int r = ready();
	if (r) return r;
	if (d < 0 || d >= MAX_DEVICES) return GDEV_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	u_dev dev;
	if (!contexts[d] && !(r = cu.DeviceGet(&dev, d))) r = cu.DevicePrimaryCtxRetain(&contexts[d], dev);
	*out = contexts[d];
	pthread_mutex_unlock(&lock);
	return r;
}

#define READY() do { int ready_ = ready(); if (ready_) return ready_; } while (0)
#define P(p) ((u_ptr)(uintptr_t)(p))

static g_drc GetDeviceCount(int *n) { READY(); return cu.DeviceGetCount(n); }
static g_drc SetDevice(int d) {
	u_ctx c;
	int r = context(d, &c);
	return r ? r : cu.CtxSetCurrent(c);
}
static g_drc GetDevice(int *d) { return cu.CtxGetDevice(d); } // an error where the thread has none: the runtime says 0 then
static g_drc DeviceGetPCIBusId(char *s, int n, int d) { READY(); return cu.DeviceGetPCIBusId(s, n, d); }
static g_drc DeviceSynchronize(void) { return cu.CtxSynchronize(); }
static g_drc DeviceCanAccessPeer(int *can, int d, int peer) { READY(); return cu.DeviceCanAccessPeer(can, d, peer); }
static g_drc DeviceEnablePeerAccess(int peer, unsigned flags) {
	u_ctx c;
	int r = context(peer, &c);
	return r ? r : cu.CtxEnablePeerAccess(c, flags);
}
static g_drc DeviceDisablePeerAccess(int peer) {
	u_ctx c;
	int r = context(peer, &c);
	return r ? r : cu.CtxDisablePeerAccess(c);
}
static g_drc GetDeviceProperties(g_prop *p, int d) { READY(); return cu.DeviceGetName(p, 256, d); } // the name is all that is asked for
static g_drc DriverGetVersion(int *v) { return cu.DriverGetVersion(v); }
static g_drc RuntimeGetVersion(int *v) { return cu.DriverGetVersion(v); }

static g_drc DeviceGetAttribute(int *v, g_attr attr, int d) {
	u_dev dev;
	READY();
	int r = cu.DeviceGet(&dev, d);
	return r ? r : cu.DeviceGetAttribute(v, attr, dev); // with the runtime's numbers
}

static g_drc MemGetInfo(size_t *free, size_t *total) { return cu.MemGetInfo_v2(free, total); }
static g_drc Malloc(void **p, size_t n) { u_ptr q = 0; int r = cu.MemAlloc_v2(&q, n); *p = (void *)(uintptr_t)q; return r; }
static g_drc Free(void *p) { return p ? cu.MemFree_v2(P(p)) : 0; }
static g_drc MallocAsync(void **p, size_t n, g_stream s) {
	u_ptr q = 0;
	int r = cu.MemAllocAsync(&q, n, s);
	*p = (void *)(uintptr_t)q;
	return r;
}
static g_drc FreeAsync(void *p, g_stream s) { return p ? cu.MemFreeAsync(P(p), s) : 0; }
static g_drc MallocManaged(void **p, size_t n, unsigned flags) {
	u_ptr q = 0;
	int r = cu.MemAllocManaged(&q, n, flags);
	*p = (void *)(uintptr_t)q;
	return r;
}
static g_drc HostAlloc(void **p, size_t n, unsigned flags) { return cu.MemHostAlloc(p, n, flags); }
static g_drc FreeHost(void *p) { return p ? cu.MemFreeHost(p) : 0; }
static g_drc PointerGetAttributes(g_pointer *out, const void *p) {
	struct gdev_pointer *a = out;
	unsigned type = 0, managed = 0;
	int dev = 0;
	if (cu.PointerGetAttribute(&type, GCU_POINTER_MEMORY_TYPE, P(p))) return 0; // the runtime's answer as well: type 0
	cu.PointerGetAttribute(&managed, GCU_POINTER_IS_MANAGED, P(p));
	cu.PointerGetAttribute(&dev, GCU_POINTER_DEVICE_ORDINAL, P(p));
	a->type = managed ? 3 : (int)type; // host and device have the runtime's numbers
	a->device = dev;
	return 0;
}

static g_drc Memcpy(void *dst, const void *src, size_t n, g_memkind kind) {
	switch (kind) {
	case GDEV_HOST_TO_DEVICE: return cu.MemcpyHtoD_v2(P(dst), src, n);
	case GDEV_DEVICE_TO_HOST: return cu.MemcpyDtoH_v2(dst, P(src), n);
	default: return cu.Memcpy(P(dst), P(src), n);
	}
}
static g_drc MemcpyAsync(void *dst, const void *src, size_t n, g_memkind kind, g_stream s) {
	(void)kind;
	return cu.MemcpyAsync(P(dst), P(src), n, s);
}
static g_drc Memset(void *p, int v, size_t n) { return cu.MemsetD8_v2(P(p), v, n); }
static g_drc MemsetAsync(void *p, int v, size_t n, g_stream s) { return cu.MemsetD8Async(P(p), v, n, s); }

static g_drc StreamCreateWithFlags(g_stream *s, unsigned flags) { return cu.StreamCreate(s, flags); }
static g_drc StreamDestroy(g_stream s) { return cu.StreamDestroy_v2(s); }
static g_drc StreamSynchronize(g_stream s) { return cu.StreamSynchronize(s); }
static g_drc StreamQuery(g_stream s) { return cu.StreamQuery(s); }
static g_drc StreamWaitEvent(g_stream s, g_event e, unsigned flags) { return cu.StreamWaitEvent(s, e, flags); }
static g_drc StreamBeginCapture(g_stream s, g_capmode mode) { return cu.StreamBeginCapture_v2(s, mode); }
static g_drc StreamEndCapture(g_stream s, g_graph *g) { return cu.StreamEndCapture(s, g); }
static g_drc StreamIsCapturing(g_stream s, g_capstate *state) { return cu.StreamIsCapturing(s, state); }
static g_drc ThreadExchangeStreamCaptureMode(g_capmode *mode) { return cu.ThreadExchangeStreamCaptureMode(mode); }
static g_drc GraphInstantiateWithFlags(g_exec *x, g_graph g, unsigned long long flags) { return cu.GraphInstantiateWithFlags(x, g, flags); }
static g_drc GraphLaunch(g_exec x, g_stream s) { return cu.GraphLaunch(x, s); }
static g_drc GraphExecDestroy(g_exec x) { return cu.GraphExecDestroy(x); }
static g_drc GraphDestroy(g_graph g) { return cu.GraphDestroy(g); }

static g_drc EventCreateWithFlags(g_event *e, unsigned flags) { return cu.EventCreate(e, flags); }
static g_drc EventDestroy(g_event e) { return cu.EventDestroy_v2(e); }
static g_drc EventRecord(g_event e, g_stream s) { return cu.EventRecord(e, s); }
static g_drc EventQuery(g_event e) { return cu.EventQuery(e); }
static g_drc EventSynchronize(g_event e) { return cu.EventSynchronize(e); }
static g_drc EventElapsedTime(float *ms, g_event a, g_event b) { return cu.EventElapsedTime(ms, a, b); }

static g_drc GetLastError(void) { return 0; } // the driver keeps none
static const char *GetErrorName(g_drc r) {
	const char *text = NULL;
	cu.GetErrorName(r, &text);
	return text ? text : "unknown error";
}
static const char *GetErrorString(g_drc r) {
	const char *text = NULL;
	cu.GetErrorString(r, &text);
	return text ? text : "unknown error";
}

static g_drc (*const HostFree)(void *) = NULL; // HIP's name for FreeHost

const char *gcu_fill(gdev *t, void *library) {
	const char *missing = NULL;
	char name[64];
#define FIND(ret, function, params) \
	snprintf(name, sizeof name, "cu" #function); \
	*(void **)&cu.function = dlsym(library, name); \
	if (!cu.function && !missing) missing = #function;
	GCU_FUNCS(FIND)
	if (missing) return missing;
#define LOOK(ret, function, params) *(void **)&cu.function = dlsym(library, "cu" #function);
	GCU_LATER_FUNCS(LOOK)
#define FILL(required, ret, name, params) t->name = name;
	GDEV_FUNCS(FILL)
	if (!cu.MemAllocAsync || !cu.MemFreeAsync) t->MallocAsync = NULL, t->FreeAsync = NULL;
	return NULL;
}
