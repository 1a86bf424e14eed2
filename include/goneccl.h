// The calls of oneCCL's C interface (libccl.so.2, from 2021.17 on). Its own header is C++ only, and none is needed
// to build: GONECCL_FUNCS is the whole binding, from which the table of functions and its loader are made.
// test/vendor/oneccl compiles this very table against the real headers, with their types for ours
// (GONECCL_VENDOR_TYPES), so a row that differs from a header does not compile there.
#ifndef GONECCL_H
#define GONECCL_H

#include <stddef.h>
#include <stdint.h>

#ifndef GONECCL_VENDOR_TYPES
typedef int o_res, o_dtype, o_op; // C enums in the header: 4 bytes
typedef struct goneccl_opaque *o_comm;
typedef struct { char data[4096]; } o_uid; // onecclUniqueId, passed by value
#endif

enum {
	GONECCL_INT8, GONECCL_UINT8, GONECCL_INT32, GONECCL_UINT32, GONECCL_INT64, GONECCL_UINT64,
	GONECCL_FLOAT16, GONECCL_FLOAT32, GONECCL_FLOAT64, GONECCL_BFLOAT16
};
enum { GONECCL_SUM, GONECCL_PROD, GONECCL_MAX, GONECCL_MIN };
// From 6 on they are not NCCL's.
enum {
	GONECCL_SUCCESS, GONECCL_ERROR, GONECCL_SYSTEM, GONECCL_INTERNAL, GONECCL_INVALID_ARGUMENT, GONECCL_INVALID_USAGE,
	GONECCL_IN_PROGRESS, GONECCL_FAILURE_GPU, GONECCL_FAILURE_CPU, GONECCL_ALLOC_CPU, GONECCL_ALLOC_GPU,
	GONECCL_PLUGIN_EXCEPTION, GONECCL_NOT_IMPLEMENTED
};
#define GONECCL_OLDEST 20211700 // the first version with a C interface

// X(required, return, name, parameters). The last pointer of a collective is a sycl::queue *, null for host memory.
#define GONECCL_FUNCS(X) \
	X(1, o_res, GetVersion, (int *)) \
	X(1, o_res, GetUniqueId, (o_uid *)) \
	X(1, const char *, GetErrorString, (o_res)) \
	X(1, const char *, GetLastError, (o_comm)) \
	X(1, o_res, SetDevice, (uint32_t)) \
	X(1, o_res, CommInitRank, (o_comm *, size_t, o_uid, int)) \
	X(1, o_res, CommDestroy, (o_comm)) \
	X(1, o_res, AllReduce, (void *, void *, size_t, o_dtype, o_op, o_comm, void *)) \
	X(1, o_res, Reduce, (const void *, void *, size_t, o_dtype, o_op, int, o_comm, void *)) \
	X(1, o_res, Broadcast, (const void *, void *, size_t, o_dtype, int, o_comm, void *)) \
	X(1, o_res, ReduceScatter, (const void *, void *, size_t, o_dtype, o_op, o_comm, void *)) \
	X(1, o_res, AllGather, (const void *, void *, size_t, o_dtype, o_comm, void *)) \
	X(1, o_res, AllToAll, (const void *, void *, size_t, o_dtype, o_comm, void *)) \
	X(0, o_res, AllToAllV, (const void *, const size_t *, void *, const size_t *, o_dtype, o_comm, void *)) /* 2022.1 */ \
	X(0, o_res, Scatter, (const void *, void *, size_t, o_dtype, int, o_comm, void *)) /* 2022.1 */ \
	X(1, o_res, Send, (const void *, size_t, o_dtype, int, o_comm, void *)) \
	X(1, o_res, Recv, (void *, size_t, o_dtype, int, o_comm, void *))

#define GONECCL_DECL(req, ret, name, params) ret (*name) params;
typedef struct { GONECCL_FUNCS(GONECCL_DECL) } goneccl;

#endif
