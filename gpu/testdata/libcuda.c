// A libcuda.so.1 on top of the fake runtime, which it is linked with: what internal/gpu makes of a driver is tested with it. A
// context is the number of its device plus 1.
#include "../../include/gcu.h"
#include "../../include/gdev.h"

#define FAKE(required, ret, name, params) ret cuda##name params;
GDEV_FUNCS(FAKE)

static __thread int bound; // a context, 0: none

static int on(void) { return bound ? 0 : GCU_INVALID_CONTEXT; }
#define ON() do { if (on()) return on(); } while (0)

int cuInit(unsigned flags) { int n; (void)flags; return cudaGetDeviceCount(&n); }
int cuDriverGetVersion(int *v) { return cudaDriverGetVersion(v); }
int cuDeviceGetCount(int *n) { return cudaGetDeviceCount(n); }
int cuDeviceGet(int *dev, int d) { int n; cudaGetDeviceCount(&n); *dev = d; return d < n ? 0 : GDEV_INVALID_DEVICE; }
int cuDeviceGetName(char *s, int n, int d) { (void)n; return cudaGetDeviceProperties(s, d); }
int cuDeviceGetPCIBusId(char *s, int n, int d) { return cudaDeviceGetPCIBusId(s, n, d); }
int cuDeviceCanAccessPeer(int *can, int d, int peer) { return cudaDeviceCanAccessPeer(can, d, peer); }
int cuDevicePrimaryCtxRetain(u_ctx *c, int d) { *c = (char *)0 + d + 1; return 0; }
int cuCtxSetCurrent(u_ctx c) { bound = (char *)c - (char *)0; return cudaSetDevice(bound - 1); }
int cuCtxGetDevice(int *d) { ON(); return cudaGetDevice(d); }
int cuCtxSynchronize(void) { ON(); return cudaDeviceSynchronize(); }
int cuCtxEnablePeerAccess(u_ctx c, unsigned flags) { ON(); return cudaDeviceEnablePeerAccess((char *)c - (char *)0 - 1, flags); }
int cuCtxDisablePeerAccess(u_ctx c) { ON(); return cudaDeviceDisablePeerAccess((char *)c - (char *)0 - 1); }
int cuMemGetInfo_v2(size_t *f, size_t *t) { ON(); return cudaMemGetInfo(f, t); }
int cuMemAlloc_v2(u_ptr *p, size_t n) { ON(); return cudaMalloc((void **)p, n); }
int cuMemFree_v2(u_ptr p) { ON(); return cudaFree((void *)p); }
int cuDeviceGetAttribute(int *v, int attr, int d) { return cudaDeviceGetAttribute(v, attr, d); }
int cuMemAllocAsync(u_ptr *p, size_t n, u_stream s) { ON(); return cudaMallocAsync((void **)p, n, s); }
int cuMemFreeAsync(u_ptr p, u_stream s) { ON(); return cudaFreeAsync((void *)p, s); }
int cuMemAllocManaged(u_ptr *p, size_t n, unsigned flags) { ON(); return cudaMallocManaged((void **)p, n, flags); }
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { ON(); return cudaHostAlloc(p, n, flags); }
int cuMemFreeHost(void *p) { ON(); return cudaFreeHost(p); }
int cuPointerGetAttribute(void *out, int attr, u_ptr p) {
	ON();
	struct gdev_pointer a = {0};
	int r = cudaPointerGetAttributes(&a, (void *)p);
	if (r || !a.type) return GDEV_INVALID_VALUE;
	*(int *)out = attr == GCU_POINTER_DEVICE_ORDINAL ? a.device : attr == GCU_POINTER_IS_MANAGED ? a.type == 3 : a.type == 1 ? GCU_MEMORY_HOST : GCU_MEMORY_DEVICE;
	return 0;
}
int cuMemcpyHtoD_v2(u_ptr d, const void *s, size_t n) { ON(); return cudaMemcpy((void *)d, s, n, GDEV_HOST_TO_DEVICE); }
int cuMemcpyDtoH_v2(void *d, u_ptr s, size_t n) { ON(); return cudaMemcpy(d, (void *)s, n, GDEV_DEVICE_TO_HOST); }
int cuMemcpy(u_ptr d, u_ptr s, size_t n) { ON(); return cudaMemcpy((void *)d, (void *)s, n, GDEV_ANY_TO_ANY); }
int cuMemcpyAsync(u_ptr d, u_ptr s, size_t n, u_stream st) { ON(); return cudaMemcpyAsync((void *)d, (void *)s, n, GDEV_ANY_TO_ANY, st); }
int cuMemsetD8_v2(u_ptr p, unsigned char v, size_t n) { ON(); return cudaMemset((void *)p, v, n); }
int cuMemsetD8Async(u_ptr p, unsigned char v, size_t n, u_stream s) { ON(); return cudaMemsetAsync((void *)p, v, n, s); }
int cuStreamCreate(u_stream *s, unsigned flags) { ON(); return cudaStreamCreateWithFlags(s, flags); }
int cuStreamDestroy_v2(u_stream s) { return cudaStreamDestroy(s); }
int cuStreamSynchronize(u_stream s) { ON(); return cudaStreamSynchronize(s); }
int cuStreamQuery(u_stream s) { ON(); return cudaStreamQuery(s); }
int cuStreamWaitEvent(u_stream s, u_event e, unsigned flags) { ON(); return cudaStreamWaitEvent(s, e, flags); }
int cuStreamBeginCapture_v2(u_stream s, int mode) { ON(); return cudaStreamBeginCapture(s, mode); }
int cuStreamEndCapture(u_stream s, u_graph *g) { ON(); return cudaStreamEndCapture(s, g); }
int cuStreamIsCapturing(u_stream s, int *state) { ON(); return cudaStreamIsCapturing(s, state); }
int cuThreadExchangeStreamCaptureMode(int *mode) { return cudaThreadExchangeStreamCaptureMode(mode); }
int cuGraphInstantiateWithFlags(u_exec *x, u_graph g, unsigned long long flags) { ON(); return cudaGraphInstantiateWithFlags(x, g, flags); }
int cuGraphLaunch(u_exec x, u_stream s) { ON(); return cudaGraphLaunch(x, s); }
int cuGraphExecDestroy(u_exec x) { return cudaGraphExecDestroy(x); }
int cuGraphDestroy(u_graph g) { return cudaGraphDestroy(g); }
int cuEventCreate(u_event *e, unsigned flags) { ON(); return cudaEventCreateWithFlags(e, flags); }
int cuEventDestroy_v2(u_event e) { return cudaEventDestroy(e); }
int cuEventRecord(u_event e, u_stream s) { ON(); return cudaEventRecord(e, s); }
int cuEventQuery(u_event e) { return cudaEventQuery(e); }
int cuEventSynchronize(u_event e) { return cudaEventSynchronize(e); }
int cuEventElapsedTime(float *ms, u_event a, u_event b) { return cudaEventElapsedTime(ms, a, b); }
int cuGetErrorName(int r, const char **s) { *s = cudaGetErrorName(r); return 0; }
int cuGetErrorString(int r, const char **s) { *s = cudaGetErrorString(r); return 0; }
