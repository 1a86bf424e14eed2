//go:build ignore

// Compiles if, and only if, include/gdev.h agrees with a vendor's header: HEADER is what to include, and HAVE_<function>
// is 1 for each function that it declares. The table itself is what is checked, with the vendor's types in place of ours, and
// not a second copy of it.
#include HEADER
#define GDEV_VENDOR_TYPES
#ifdef __HIP_PLATFORM_AMD__
#define DEV(name) hip##name
typedef hipMemcpyKind g_memkind;
typedef hipDeviceAttribute_t g_attr;
typedef hipStreamCaptureMode g_capmode;
typedef hipStreamCaptureStatus g_capstate;
typedef hipDeviceProp_t g_prop;
typedef hipPointerAttribute_t g_pointer;
#else
#define DEV(name) cuda##name
typedef enum cudaMemcpyKind g_memkind;
typedef enum cudaDeviceAttr g_attr;
typedef enum cudaStreamCaptureMode g_capmode;
typedef enum cudaStreamCaptureStatus g_capstate;
typedef struct cudaDeviceProp g_prop;
typedef struct cudaPointerAttributes g_pointer;
#endif
typedef DEV(Error_t) g_drc;
typedef DEV(Stream_t) g_stream;
typedef DEV(Event_t) g_event;
typedef DEV(Graph_t) g_graph;
typedef DEV(GraphExec_t) g_exec;
#include GDEV

// A row is checked where the header has the function; one that is required must be there.
#define PLACE_1 0,
#define SECOND(a, b, ...) b
#define IS_1(x) IS_1_(PLACE_##x)
#define IS_1_(x) SECOND(x 1, 0, 0)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define ROW_1(required, ret, function, params) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&function), ret(*) params), "gdev.h has another signature of " #function);
#define ROW_0(required, ret, function, params) _Static_assert(!required, "the vendor's header has no " #function);
#define ROW(required, ret, name, params) ROW__(required, ret, DEV(name), params, HAVE_##name)
#define ROW__(required, ret, function, params, have) JOIN(ROW_, IS_1(have))(required, ret, function, params)
GDEV_FUNCS(ROW)

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)
SAME(GDEV_OK, DEV(Success));
SAME(GDEV_INVALID_VALUE, DEV(ErrorInvalidValue));
SAME(GDEV_NO_MEMORY, DEV(ErrorMemoryAllocation));
SAME(GDEV_INSUFFICIENT_DRIVER, DEV(ErrorInsufficientDriver));
SAME(GDEV_NO_DEVICE, DEV(ErrorNoDevice));
SAME(GDEV_INVALID_DEVICE, DEV(ErrorInvalidDevice));
SAME(GDEV_INVALID_HANDLE, DEV(ErrorInvalidResourceHandle));
SAME(GDEV_NOT_READY, DEV(ErrorNotReady));
SAME(GDEV_PEER_ENABLED, DEV(ErrorPeerAccessAlreadyEnabled));
SAME(GDEV_PEER_NOT_ENABLED, DEV(ErrorPeerAccessNotEnabled));
SAME(GDEV_NOT_SUPPORTED, DEV(ErrorNotSupported));
SAME(GDEV_HOST_TO_DEVICE, DEV(MemcpyHostToDevice));
SAME(GDEV_DEVICE_TO_HOST, DEV(MemcpyDeviceToHost));
SAME(GDEV_DEVICE_TO_DEVICE, DEV(MemcpyDeviceToDevice));
SAME(GDEV_ANY_TO_ANY, DEV(MemcpyDefault));
SAME(GDEV_CAPTURE_RELAXED, DEV(StreamCaptureModeRelaxed));
SAME(GDEV_CAPTURE_NONE, DEV(StreamCaptureStatusNone));
#ifndef NO_MACROS // where the declarations come without them
SAME(GDEV_STREAM_NON_BLOCKING, DEV(StreamNonBlocking));
SAME(GDEV_EVENT_NO_TIMING, DEV(EventDisableTiming));
SAME(GDEV_MEM_GLOBAL, DEV(MemAttachGlobal));
#endif

_Static_assert(sizeof(g_drc) == 4 && sizeof(g_memkind) == 4 && sizeof(g_capmode) == 4 && sizeof(g_capstate) == 4, "enums of 4 bytes");
_Static_assert(sizeof(g_stream) == 8 && sizeof(g_event) == 8 && sizeof(g_graph) == 8 && sizeof(g_exec) == 8, "handles of 8 bytes");
_Static_assert(offsetof(g_prop, name) == 0 && sizeof(((g_prop *)0)->name) == 256, "the name is first in the properties");
_Static_assert(sizeof(g_prop) <= GDEV_PROP_MAX, "the properties fit");
_Static_assert(sizeof(g_pointer) <= sizeof(struct gdev_pointer), "a pointer's attributes fit");
_Static_assert(offsetof(g_pointer, type) == offsetof(struct gdev_pointer, type), "type of memory");
_Static_assert(offsetof(g_pointer, device) == offsetof(struct gdev_pointer, device), "device of memory");
_Static_assert(offsetof(g_pointer, devicePointer) == offsetof(struct gdev_pointer, on_device), "address on the device");
_Static_assert(offsetof(g_pointer, hostPointer) == offsetof(struct gdev_pointer, on_host), "address on the host");
#ifdef __HIP_PLATFORM_AMD__
SAME(1, hipMemoryTypeHost);
SAME(2, hipMemoryTypeDevice);
SAME(3, hipMemoryTypeManaged);
#else
SAME(GDEV_CC_MAJOR, cudaDevAttrComputeCapabilityMajor);
SAME(GDEV_CC_MINOR, cudaDevAttrComputeCapabilityMinor);
SAME(1, cudaMemoryTypeHost);
SAME(2, cudaMemoryTypeDevice);
SAME(3, cudaMemoryTypeManaged);
#endif
