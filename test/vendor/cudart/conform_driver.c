//go:build ignore

// Compiles if, and only if, include/gcu.h agrees with cuda.h: as conform.c, but all functions must be there.
#include <cuda.h>
#define GCU_VENDOR_TYPES
typedef CUresult u_res;
typedef CUdevice u_dev;
typedef CUdeviceptr u_ptr;
typedef CUcontext u_ctx;
typedef CUstream u_stream;
typedef CUevent u_event;
typedef CUgraph u_graph;
typedef CUgraphExec u_exec;
typedef CUpointer_attribute u_pointer_attr;
typedef CUdevice_attribute u_attr;
typedef CUmodule u_module;
typedef CUfunction u_function;
typedef CUjit_option u_jit;
typedef CUstreamCaptureMode u_capmode;
typedef CUstreamCaptureStatus u_capstate;
#include GCU
#include GDEV

#define ROW(ret, name, params) _Static_assert(__builtin_types_compatible_p(__typeof__(&cu##name), ret(*) params), "gcu.h has another signature of cu" #name);
GCU_FUNCS(ROW)
GCU_LATER_FUNCS(ROW)
GCU_MODULE_FUNCS(ROW)
#if CUDA_VERSION >= 12040
GCU_PARAM_FUNCS(ROW)
#endif

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)
SAME(GDEV_OK, CUDA_SUCCESS);
SAME(GDEV_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(GDEV_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GDEV_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GDEV_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(GCU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(GCU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(GCU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(GDEV_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(GDEV_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GDEV_PEER_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(GDEV_PEER_NOT_ENABLED, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME(GDEV_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(GDEV_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GDEV_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(GDEV_MEM_GLOBAL, CU_MEM_ATTACH_GLOBAL);
SAME(GDEV_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(GDEV_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(GDEV_CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(GDEV_CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(GCU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(GCU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(GCU_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(GCU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(GCU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
_Static_assert(sizeof(u_res) == 4 && sizeof(u_dev) == 4 && sizeof(u_pointer_attr) == 4 && sizeof(u_capmode) == 4 && sizeof(u_capstate) == 4 && sizeof(u_jit) == 4, "enums of 4 bytes");
_Static_assert(sizeof(u_ptr) == 8 && sizeof(u_ctx) == 8 && sizeof(u_stream) == 8 && sizeof(u_event) == 8 && sizeof(u_graph) == 8 && sizeof(u_exec) == 8 && sizeof(u_module) == 8 && sizeof(u_function) == 8, "handles of 8 bytes");
