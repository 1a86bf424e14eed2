// The CUDA and HIP runtimes as this module calls them: one table, since HIP has CUDA's functions under
// its own prefix. No vendor's header is needed to build with it; test/vendor/cudart compiles it
// once more with the vendors' headers and types, row by row, so that a drift is an error there.
//
// A table is filled once per process, by internal/gpu, and then read only. Devices are numbered as the
// runtime numbers the visible ones. Addresses, streams and events cross to Go as uintptr_t.
#ifndef GDEV_H
#define GDEV_H

#include <stddef.h>
#include <stdint.h>

#ifndef GDEV_VENDOR_TYPES
typedef int g_drc;      // cudaError_t, hipError_t; enums are 4 bytes in both
typedef int g_memkind;  // cudaMemcpyKind
typedef int g_attr;     // cudaDeviceAttr
typedef int g_capmode;  // cudaStreamCaptureMode
typedef int g_capstate; // cudaStreamCaptureStatus
typedef void *g_stream; // NULL is the default stream
typedef void *g_event;
typedef void *g_graph;
typedef void *g_exec;
typedef void g_prop;     // cudaDeviceProp: of another size in every version; its first field is char name[256]
typedef void g_pointer;  // cudaPointerAttributes: see struct gdev_pointer
#endif

// X(required, return, name, parameters). The optional ones have come later, or go by another name in one
// of the two (FreeHost is CUDA's, HostFree HIP's): their pointers may be NULL.
#define GDEV_FUNCS(X) \
	X(1, g_drc, GetDeviceCount, (int *)) \
	X(1, g_drc, SetDevice, (int)) \
	X(1, g_drc, GetDevice, (int *)) \
	X(1, g_drc, DeviceGetPCIBusId, (char *, int, int)) \
	X(1, g_drc, DeviceSynchronize, (void)) \
	X(1, g_drc, DeviceCanAccessPeer, (int *, int, int)) \
	X(1, g_drc, DeviceEnablePeerAccess, (int, unsigned)) \
	X(1, g_drc, DeviceDisablePeerAccess, (int)) \
	X(0, g_drc, GetDeviceProperties, (g_prop *, int)) \
	X(0, g_drc, DeviceGetAttribute, (int *, g_attr, int)) \
	X(1, g_drc, DriverGetVersion, (int *)) \
	X(1, g_drc, RuntimeGetVersion, (int *)) \
	X(1, g_drc, MemGetInfo, (size_t *, size_t *)) \
	X(1, g_drc, Malloc, (void **, size_t)) \
	X(1, g_drc, Free, (void *)) \
	X(0, g_drc, MallocAsync, (void **, size_t, g_stream)) \
	X(0, g_drc, FreeAsync, (void *, g_stream)) \
	X(0, g_drc, MallocManaged, (void **, size_t, unsigned)) \
	X(1, g_drc, HostAlloc, (void **, size_t, unsigned)) \
	X(0, g_drc, FreeHost, (void *)) \
	X(0, g_drc, HostFree, (void *)) \
	X(0, g_drc, PointerGetAttributes, (g_pointer *, const void *)) \
	X(1, g_drc, Memcpy, (void *, const void *, size_t, g_memkind)) \
	X(1, g_drc, MemcpyAsync, (void *, const void *, size_t, g_memkind, g_stream)) \
	X(1, g_drc, Memset, (void *, int, size_t)) \
	X(1, g_drc, MemsetAsync, (void *, int, size_t, g_stream)) \
	X(1, g_drc, StreamCreateWithFlags, (g_stream *, unsigned)) \
	X(1, g_drc, StreamDestroy, (g_stream)) \
	X(1, g_drc, StreamSynchronize, (g_stream)) \
	X(1, g_drc, StreamQuery, (g_stream)) \
	X(1, g_drc, StreamWaitEvent, (g_stream, g_event, unsigned)) \
	X(0, g_drc, StreamBeginCapture, (g_stream, g_capmode)) \
	X(0, g_drc, StreamEndCapture, (g_stream, g_graph *)) \
	X(0, g_drc, StreamIsCapturing, (g_stream, g_capstate *)) \
	X(0, g_drc, ThreadExchangeStreamCaptureMode, (g_capmode *)) \
	X(0, g_drc, GraphInstantiateWithFlags, (g_exec *, g_graph, unsigned long long)) \
	X(0, g_drc, GraphLaunch, (g_exec, g_stream)) \
	X(0, g_drc, GraphExecDestroy, (g_exec)) \
	X(0, g_drc, GraphDestroy, (g_graph)) \
	X(1, g_drc, EventCreateWithFlags, (g_event *, unsigned)) \
	X(1, g_drc, EventDestroy, (g_event)) \
	X(1, g_drc, EventRecord, (g_event, g_stream)) \
	X(1, g_drc, EventQuery, (g_event)) \
	X(1, g_drc, EventSynchronize, (g_event)) \
	X(1, g_drc, EventElapsedTime, (float *, g_event, g_event)) \
	X(1, g_drc, GetLastError, (void)) \
	X(1, const char *, GetErrorName, (g_drc)) \
	X(1, const char *, GetErrorString, (g_drc))

#define GDEV_POINTER(required, ret, name, params) ret(*name) params;
typedef struct gdev {
	GDEV_FUNCS(GDEV_POINTER)
} gdev;

// Results and other numbers, the same in both.
enum {
	GDEV_OK = 0,
	GDEV_INVALID_VALUE = 1,
	GDEV_NO_MEMORY = 2,
	GDEV_INSUFFICIENT_DRIVER = 35,
	GDEV_NO_DEVICE = 100,
	GDEV_INVALID_DEVICE = 101,
	GDEV_INVALID_HANDLE = 400,
	GDEV_NOT_READY = 600,
	GDEV_PEER_ENABLED = 704,
	GDEV_PEER_NOT_ENABLED = 705,
	GDEV_NOT_SUPPORTED = 801,

	GDEV_HOST_TO_DEVICE = 1, // g_memkind
	GDEV_DEVICE_TO_HOST = 2,
	GDEV_DEVICE_TO_DEVICE = 3,
	GDEV_ANY_TO_ANY = 4, // the runtime sees from the addresses

	GDEV_STREAM_NON_BLOCKING = 1,
	GDEV_EVENT_NO_TIMING = 2,
	GDEV_MEM_GLOBAL = 1,      // MallocManaged: any stream on any device
	GDEV_CAPTURE_RELAXED = 2, // g_capmode: the only one that lets another thread end what one began
	GDEV_CAPTURE_NONE = 0,    // g_capstate

	GDEV_CC_MAJOR = 75, // g_attr: of the compute capability. CUDA's alone: HIP numbers them otherwise
	GDEV_CC_MINOR = 76,
};

// GetDeviceProperties writes at most this much.
#define GDEV_PROP_MAX 8192

// What both write first of all in PointerGetAttributes; type is of CUDA 11, HIP 6 and later.
struct gdev_pointer {
	int type; // 0 not registered, 1 host, 2 device, 3 managed
	int device;
	void *on_device, *on_host;
	char more[240];
};

// gdev_on makes dev the device of this thread. Goroutines change threads between two calls into C, so every C
// function that needs a current device begins with it. The thread's former device is not put back: to
// select it again would make a context, some hundred MiB, on a device that nobody has asked for. On a thread that has
// chosen none the runtime says 0 and has no context, so the first choice is made whatever it says.
static inline g_drc gdev_on(const gdev *t, int dev) {
	static __thread char chosen;
	int now;
	if (chosen && t->GetDevice(&now) == 0 && now == dev)
		return 0;
	g_drc r = t->SetDevice(dev);
	chosen |= !r;
	return r;
}

// gdev_relaxed lets this thread ask for events while another captures in CUDA's global mode, which such a call would break,
// until gdev_strict with what it returned.
static inline g_capmode gdev_relaxed(const gdev *t) {
	g_capmode mode = GDEV_CAPTURE_RELAXED;
	if (t->ThreadExchangeStreamCaptureMode)
		t->ThreadExchangeStreamCaptureMode(&mode);
	return mode;
}
static inline void gdev_strict(const gdev *t, g_capmode mode) {
	if (t->ThreadExchangeStreamCaptureMode)
		t->ThreadExchangeStreamCaptureMode(&mode);
}

// gdev_ret takes a failure out of the thread's last error as well, where a later and unrelated
// cudaGetLastError of another library would find it.
static inline g_drc gdev_ret(const gdev *t, g_drc r) {
	if (r) t->GetLastError();
	return r;
}

#endif
