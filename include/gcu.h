// The part of the CUDA driver's library, libcuda.so.1, that can stand in for the CUDA runtime: every machine with a GPU has
// it, and many have no other library than this and NCCL, which brings a runtime for itself alone. No vendor's header
// is needed; test/vendor/cudart holds this table against cuda.h.
#ifndef GCU_H
#define GCU_H

#include <stddef.h>

#ifndef GCU_VENDOR_TYPES
typedef int u_res;           // CUresult: where cudaError_t has the same error, it has the same number
typedef int u_dev;           // CUdevice
typedef unsigned long long u_ptr; // CUdeviceptr
typedef void *u_ctx, *u_stream, *u_event, *u_graph, *u_exec, *u_module, *u_function;
typedef int u_pointer_attr, u_capmode, u_capstate, u_attr, u_jit;
#endif

// X(return, name, parameters): all of the first table are required. What has a newer form goes by
// the name of that, _v2.
#define GCU_FUNCS(X) \
	X(u_res, Init, (unsigned)) \
	X(u_res, DriverGetVersion, (int *)) \
	X(u_res, DeviceGetCount, (int *)) \
	X(u_res, DeviceGet, (u_dev *, int)) \
	X(u_res, DeviceGetName, (char *, int, u_dev)) \
	X(u_res, DeviceGetPCIBusId, (char *, int, u_dev)) \
	X(u_res, DeviceGetAttribute, (int *, u_attr, u_dev)) \
	X(u_res, DeviceCanAccessPeer, (int *, u_dev, u_dev)) \
	X(u_res, DevicePrimaryCtxRetain, (u_ctx *, u_dev)) \
	X(u_res, CtxSetCurrent, (u_ctx)) \
	X(u_res, CtxGetDevice, (u_dev *)) \
	X(u_res, CtxSynchronize, (void)) \
	X(u_res, CtxEnablePeerAccess, (u_ctx, unsigned)) \
	X(u_res, CtxDisablePeerAccess, (u_ctx)) \
	X(u_res, MemGetInfo_v2, (size_t *, size_t *)) \
	X(u_res, MemAlloc_v2, (u_ptr *, size_t)) \
	X(u_res, MemFree_v2, (u_ptr)) \
	X(u_res, MemAllocManaged, (u_ptr *, size_t, unsigned)) \
	X(u_res, MemHostAlloc, (void **, size_t, unsigned)) \
	X(u_res, MemFreeHost, (void *)) \
	X(u_res, PointerGetAttribute, (void *, u_pointer_attr, u_ptr)) \
	X(u_res, MemcpyHtoD_v2, (u_ptr, const void *, size_t)) \
	X(u_res, MemcpyDtoH_v2, (void *, u_ptr, size_t)) \
	X(u_res, Memcpy, (u_ptr, u_ptr, size_t)) \
	X(u_res, MemcpyAsync, (u_ptr, u_ptr, size_t, u_stream)) \
	X(u_res, MemsetD8_v2, (u_ptr, unsigned char, size_t)) \
	X(u_res, MemsetD8Async, (u_ptr, unsigned char, size_t, u_stream)) \
	X(u_res, StreamCreate, (u_stream *, unsigned)) \
	X(u_res, StreamDestroy_v2, (u_stream)) \
	X(u_res, StreamSynchronize, (u_stream)) \
	X(u_res, StreamQuery, (u_stream)) \
	X(u_res, StreamWaitEvent, (u_stream, u_event, unsigned)) \
	X(u_res, StreamBeginCapture_v2, (u_stream, u_capmode)) \
	X(u_res, StreamEndCapture, (u_stream, u_graph *)) \
	X(u_res, StreamIsCapturing, (u_stream, u_capstate *)) \
	X(u_res, ThreadExchangeStreamCaptureMode, (u_capmode *)) \
	X(u_res, GraphInstantiateWithFlags, (u_exec *, u_graph, unsigned long long)) \
	X(u_res, GraphLaunch, (u_exec, u_stream)) \
	X(u_res, GraphExecDestroy, (u_exec)) \
	X(u_res, GraphDestroy, (u_graph)) \
	X(u_res, EventCreate, (u_event *, unsigned)) \
	X(u_res, EventDestroy_v2, (u_event)) \
	X(u_res, EventRecord, (u_event, u_stream)) \
	X(u_res, EventQuery, (u_event)) \
	X(u_res, EventSynchronize, (u_event)) \
	X(u_res, EventElapsedTime, (float *, u_event, u_event)) \
	X(u_res, GetErrorName, (u_res, const char **)) \
	X(u_res, GetErrorString, (u_res, const char **))

// These have come with CUDA 11.2.
#define GCU_LATER_FUNCS(X) \
	X(u_res, MemAllocAsync, (u_ptr *, size_t, u_stream)) \
	X(u_res, MemFreeAsync, (u_ptr, u_stream))

// What kernels need, beside either: modules are the driver's alone.
#define GCU_MODULE_FUNCS(X) \
	X(u_res, ModuleLoadDataEx, (u_module *, const void *, unsigned, u_jit *, void **)) \
	X(u_res, ModuleUnload, (u_module)) \
	X(u_res, ModuleGetFunction, (u_function *, u_module, const char *)) \
	X(u_res, LaunchKernel, (u_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, u_stream, void **, void **))

// This has come with CUDA 12.4.
#define GCU_PARAM_FUNCS(X) \
	X(u_res, FuncGetParamInfo, (u_function, size_t, size_t *, size_t *))

enum {
	GCU_JIT_ERROR_LOG = 5, // u_jit: where the compiler of PTX says what is wrong, and how much room there is
	GCU_JIT_ERROR_LOG_BYTES = 6,
	GCU_INVALID_CONTEXT = 201,
	GCU_POINTER_MEMORY_TYPE = 2,
	GCU_POINTER_IS_MANAGED = 8,
	GCU_POINTER_DEVICE_ORDINAL = 9,
	GCU_MEMORY_HOST = 1,
	GCU_MEMORY_DEVICE = 2,
};

#endif
