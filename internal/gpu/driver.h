// The driver's methods (driver.go) in C, one function for each. Every function first sets the device, since two calls
// from Go may run on two threads; what it returns is the library's code, or -1 where the library has no such function.
#include "../../include/gdev.h"

#include <stdio.h>
#include <stdlib.h>

#define ON(dev) do { g_drc on_ = gdev_on(t, dev); if (on_) return gdev_ret(t, on_); } while (0)
#define NEED(function) do { if (!t->function) return -1; } while (0)
#define RETURN(call) return gdev_ret(t, call)

enum { ON_DEVICE, MANAGED, PINNED }; // kind

static inline int dev_versions(const gdev *t, int *driver, int *runtime) {
	g_drc r = t->DriverGetVersion(driver);
	RETURN(r ? r : t->RuntimeGetVersion(runtime));
}
static inline int dev_count(const gdev *t, int *n) { RETURN(t->GetDeviceCount(n)); }
static inline const char *dev_error_name(const gdev *t, int r) { return t->GetErrorName(r); }
static inline const char *dev_error_text(const gdev *t, int r) { return t->GetErrorString(r); }

// The properties are of another size in every version; the name is at their start in all.
static inline int dev_name(const gdev *t, int dev, char name[256]) {
	NEED(GetDeviceProperties);
	union { char name[256]; char all[GDEV_PROP_MAX]; long long align; } p = {{0}};
	g_drc r = t->GetDeviceProperties(&p, dev);
	if (!r) snprintf(name, 256, "%.255s", p.name);
	RETURN(r);
}
static inline int dev_bus(const gdev *t, int dev, char *text, int n) { RETURN(t->DeviceGetPCIBusId(text, n, dev)); }
static inline int dev_memory(const gdev *t, int dev, size_t *free, size_t *total) { ON(dev); RETURN(t->MemGetInfo(free, total)); }
static inline int dev_synchronize(const gdev *t, int dev) { ON(dev); RETURN(t->DeviceSynchronize()); }
static inline int dev_can_access(const gdev *t, int dev, int peer, int *can) { RETURN(t->DeviceCanAccessPeer(can, dev, peer)); }
static inline int dev_enable_peer(const gdev *t, int dev, int peer) { ON(dev); RETURN(t->DeviceEnablePeerAccess(peer, 0)); }
static inline int dev_disable_peer(const gdev *t, int dev, int peer) { ON(dev); RETURN(t->DeviceDisablePeerAccess(peer)); }

static inline int dev_alloc(const gdev *t, int dev, int kind, size_t n, uintptr_t *p) {
	ON(dev);
	void *q = NULL;
	g_drc r;
	switch (kind) {
	case ON_DEVICE: r = t->Malloc(&q, n); break;
	case MANAGED: NEED(MallocManaged); r = t->MallocManaged(&q, n, GDEV_MEM_GLOBAL); break;
	default: r = t->HostAlloc(&q, n, 0);
	}
	*p = (uintptr_t)q;
	RETURN(r);
}
static inline int dev_free(const gdev *t, int dev, int kind, uintptr_t p) {
	ON(dev);
	RETURN(kind != PINNED ? t->Free((void *)p) : t->FreeHost ? t->FreeHost((void *)p) : t->HostFree((void *)p));
}

// done waits for the default stream. Only a copy to the host ends with the call: one from pageable memory may still be on its
// way from a staging buffer, and one within the device, or Memset, has merely begun (CUDA Runtime API, "API
// synchronization behavior"); the streams of this package do not wait for the default stream.
static inline g_drc done(const gdev *t, g_drc r) { return r ? r : t->StreamSynchronize(NULL); }

static inline int dev_put(const gdev *t, int dev, uintptr_t dst, const void *src, size_t n) {
	ON(dev);
	RETURN(done(t, t->Memcpy((void *)dst, src, n, GDEV_HOST_TO_DEVICE)));
}
static inline int dev_get(const gdev *t, int dev, void *dst, uintptr_t src, size_t n) {
	ON(dev);
	RETURN(t->Memcpy(dst, (void *)src, n, GDEV_DEVICE_TO_HOST));
}
static inline int dev_copy_async(const gdev *t, int dev, uintptr_t stream, uintptr_t dst, uintptr_t src, size_t n) {
	ON(dev);
	RETURN(t->MemcpyAsync((void *)dst, (void *)src, n, GDEV_ANY_TO_ANY, (g_stream)stream));
}
static inline int dev_set(const gdev *t, int dev, uintptr_t dst, int v, size_t n) {
	ON(dev);
	RETURN(done(t, t->Memset((void *)dst, v, n)));
}
static inline int dev_set_async(const gdev *t, int dev, uintptr_t stream, uintptr_t dst, int v, size_t n) {
	ON(dev);
	RETURN(t->MemsetAsync((void *)dst, v, n, (g_stream)stream));
}
static inline int dev_pointer(const gdev *t, int dev, uintptr_t p, int *type, int *on) {
	NEED(PointerGetAttributes);
	ON(dev);
	struct gdev_pointer a = {0};
	g_drc r = t->PointerGetAttributes(&a, (void *)p);
	*type = a.type;
	*on = a.device;
	RETURN(r);
}

static inline int dev_new_stream(const gdev *t, int dev, uintptr_t *stream) {
	ON(dev);
	RETURN(t->StreamCreateWithFlags((g_stream *)stream, GDEV_STREAM_NON_BLOCKING));
}
static inline int dev_close_stream(const gdev *t, int dev, uintptr_t stream) { ON(dev); RETURN(t->StreamDestroy((g_stream)stream)); }
static inline int dev_sync_stream(const gdev *t, int dev, uintptr_t stream) { ON(dev); RETURN(t->StreamSynchronize((g_stream)stream)); }
static inline int dev_query_stream(const gdev *t, int dev, uintptr_t stream) { ON(dev); RETURN(t->StreamQuery((g_stream)stream)); }
static inline int dev_wait_event(const gdev *t, int dev, uintptr_t stream, uintptr_t event) {
	ON(dev);
	RETURN(t->StreamWaitEvent((g_stream)stream, (g_event)event, 0));
}

static inline int dev_new_event(const gdev *t, int dev, int timing, uintptr_t *event) {
	ON(dev);
	RETURN(t->EventCreateWithFlags((g_event *)event, timing ? 0 : GDEV_EVENT_NO_TIMING));
}
static inline int dev_close_event(const gdev *t, int dev, uintptr_t event) { ON(dev); RETURN(t->EventDestroy((g_event)event)); }
static inline int dev_record(const gdev *t, int dev, uintptr_t event, uintptr_t stream) {
	ON(dev);
	RETURN(t->EventRecord((g_event)event, (g_stream)stream));
}
static inline int dev_query_event(const gdev *t, int dev, uintptr_t event) { ON(dev); RETURN(t->EventQuery((g_event)event)); }
static inline int dev_sync_event(const gdev *t, int dev, uintptr_t event) { ON(dev); RETURN(t->EventSynchronize((g_event)event)); }
static inline int dev_elapsed(const gdev *t, int dev, uintptr_t from, uintptr_t to, float *ms) {
	ON(dev);
	RETURN(t->EventElapsedTime(ms, (g_event)from, (g_event)to));
}

static inline int dev_begin_capture(const gdev *t, int dev, uintptr_t stream) {
	NEED(StreamBeginCapture);
	NEED(StreamEndCapture);
	NEED(GraphInstantiateWithFlags);
	NEED(GraphLaunch);
	NEED(GraphExecDestroy);
	NEED(GraphDestroy);
	ON(dev);
	RETURN(t->StreamBeginCapture((g_stream)stream, GDEV_CAPTURE_RELAXED));
}
static inline int dev_end_capture(const gdev *t, int dev, uintptr_t stream, uintptr_t *exec) {
	NEED(StreamEndCapture);
	ON(dev);
	g_graph g = NULL;
	g_drc r = t->StreamEndCapture((g_stream)stream, &g);
	if (!r) r = t->GraphInstantiateWithFlags((g_exec *)exec, g, 0);
	if (g) t->GraphDestroy(g);
	RETURN(r);
}
static inline int dev_capturing(const gdev *t, int dev, uintptr_t stream, int *state) {
	*state = GDEV_CAPTURE_NONE;
	if (!t->StreamIsCapturing) return 0;
	ON(dev);
	RETURN(t->StreamIsCapturing((g_stream)stream, state));
}
static inline int dev_launch(const gdev *t, int dev, uintptr_t exec, uintptr_t stream) {
	ON(dev);
	RETURN(t->GraphLaunch((g_exec)exec, (g_stream)stream));
}
static inline int dev_close_graph(const gdev *t, int dev, uintptr_t exec) { ON(dev); RETURN(t->GraphExecDestroy((g_exec)exec)); }
