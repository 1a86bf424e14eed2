//go:build ignore

// Compiles if, and only if, include/gccl.h agrees with a vendor's header: HEADER is what to include, and HAVE_<function>
// is 1 for each function that it declares. The table itself is what is checked, with the vendor's types in place of ours, and
// not a second copy of it. Run, it compares what only the header's initializer has.
#include HEADER
#define GCCL_VENDOR_TYPES
typedef ncclResult_t g_res;
typedef ncclDataType_t g_dtype;
typedef ncclRedOp_t g_op;
typedef ncclScalarResidence_t g_resid;
typedef ncclComm_t g_comm;
typedef ncclUniqueId g_uid;
#if NCCL_VERSION_CODE >= 21400
typedef ncclConfig_t g_cfg;
#else // no function has one
typedef struct gccl_config g_cfg;
#endif
#ifdef __HIP_PLATFORM_AMD__
typedef hipStream_t g_stream;
#else
typedef cudaStream_t g_stream;
#endif
#if HAVE_CommWindowRegister
typedef ncclWindow_t g_win;
#else
typedef void *g_win;
#endif
#if HAVE_CommMemStats
typedef ncclCommMemStat_t g_memstat;
#else
typedef int g_memstat;
#endif
#include GCCL
#include <stdio.h>

// A row is checked where the header has the function; one that is required must be there.
#define PLACE_1 0,
#define SECOND(a, b, ...) b
#define IS_1(x) IS_1_(PLACE_##x)
#define IS_1_(x) SECOND(x 1, 0, 0)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define ROW_1(required, ret, function, params) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&function), ret(*) params), "gccl.h has another signature of " #function);
#define ROW_0(required, ret, function, params) _Static_assert(!required, "the vendor's header has no " #function);
#define ROW(required, ret, name, params) ROW__(required, ret, nccl##name, params, HAVE_##name)
#define ROW__(required, ret, function, params, have) JOIN(ROW_, IS_1(have))(required, ret, function, params)
GCCL_FUNCS(ROW)

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)
SAME(GCCL_INT8, ncclInt8);
SAME(GCCL_UINT8, ncclUint8);
SAME(GCCL_INT32, ncclInt32);
SAME(GCCL_UINT32, ncclUint32);
SAME(GCCL_INT64, ncclInt64);
SAME(GCCL_UINT64, ncclUint64);
SAME(GCCL_FLOAT16, ncclFloat16);
SAME(GCCL_FLOAT32, ncclFloat32);
SAME(GCCL_FLOAT64, ncclFloat64);
#if NCCL_VERSION_CODE >= 22400 || defined(RCCL) // NCCL 2.10 to 2.23 declare it for C++ alone
SAME(GCCL_BFLOAT16, ncclBfloat16);
#endif
#if NCCL_VERSION_CODE >= 22400
SAME(GCCL_FLOAT8E4M3, ncclFloat8e4m3);
SAME(GCCL_FLOAT8E5M2, ncclFloat8e5m2);
#endif
SAME(GCCL_SUM, ncclSum);
SAME(GCCL_PROD, ncclProd);
SAME(GCCL_MAX, ncclMax);
SAME(GCCL_MIN, ncclMin);
SAME(GCCL_AVG, ncclAvg);
#if NCCL_VERSION_CODE >= 21100
SAME(GCCL_SCALAR_DEVICE, ncclScalarDevice);
SAME(GCCL_SCALAR_HOST, ncclScalarHostImmediate);
#endif
SAME(GCCL_SUCCESS, ncclSuccess);
SAME(GCCL_UNHANDLED_CUDA, ncclUnhandledCudaError);
SAME(GCCL_SYSTEM, ncclSystemError);
SAME(GCCL_INTERNAL, ncclInternalError);
SAME(GCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(GCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(GCCL_REMOTE, ncclRemoteError);
#if NCCL_VERSION_CODE >= 21400
SAME(GCCL_IN_PROGRESS, ncclInProgress);
#endif
#if NCCL_VERSION_CODE >= 23003 && !defined(RCCL)
SAME(GCCL_TIMEOUT, ncclTimeout);
#endif
#if HAVE_CommMemStats
SAME(GCCL_MEM_TOTAL, ncclStatGpuMemTotal);
_Static_assert(sizeof(g_memstat) == 4, "an enum of 4 bytes");
#endif
#ifdef NCCL_SPLIT_NOCOLOR
SAME(GCCL_SPLIT_NOCOLOR, NCCL_SPLIT_NOCOLOR);
#endif
#ifdef NCCL_WIN_COLL_SYMMETRIC
SAME(GCCL_WIN_COLL_SYMMETRIC, NCCL_WIN_COLL_SYMMETRIC);
#endif
#ifdef NCCL_WIN_REQUIRED_ALIGNMENT
SAME(GCCL_WIN_ALIGNMENT, NCCL_WIN_REQUIRED_ALIGNMENT);
#endif
#ifdef NCCL_SHRINK_ABORT
SAME(GCCL_SHRINK_ABORT, NCCL_SHRINK_ABORT);
#endif
#ifdef NCCL_CONFIG_UNDEF_INT
SAME(GCCL_UNDEF_INT, NCCL_CONFIG_UNDEF_INT);
#endif

_Static_assert(sizeof(g_uid) == 128 && _Alignof(g_uid) == 1 && NCCL_UNIQUE_ID_BYTES == 128, "a unique id of 128 bytes");
_Static_assert(sizeof(g_res) == 4 && sizeof(g_dtype) == 4 && sizeof(g_op) == 4 && sizeof(g_resid) == 4, "enums of 4 bytes");
_Static_assert(sizeof(g_comm) == 8 && sizeof(g_stream) == 8, "handles of 8 bytes");
#if NCCL_VERSION_CODE >= 21400
// Ours is a beginning of theirs, as far as their version goes.
_Static_assert(GCCL_CONFIG_OLD_SIZE == 48, "the older configurations' size");
#if NCCL_VERSION_CODE >= GCCL_CONFIG_VERSION
_Static_assert(GCCL_CONFIG_SIZE == 72 && GCCL_CONFIG_SIZE <= sizeof(ncclConfig_t), "a configuration at least as long as ours");
#else
_Static_assert(GCCL_CONFIG_OLD_SIZE <= sizeof(ncclConfig_t), "a configuration at least as long as the old part of ours");
#endif
#define FIELD(name) \
	_Static_assert(offsetof(struct gccl_config, name) == offsetof(ncclConfig_t, name), "the place of " #name); \
	_Static_assert(sizeof((struct gccl_config){ 0 }.name) == sizeof((ncclConfig_t){ 0 }.name), "the size of " #name)
FIELD(size);
FIELD(magic);
FIELD(version);
FIELD(blocking);
FIELD(cgaClusterSize);
FIELD(minCTAs);
FIELD(maxCTAs);
FIELD(netName);
FIELD(splitShare);
#if NCCL_VERSION_CODE >= 22600
FIELD(trafficClass);
#endif
#if NCCL_VERSION_CODE >= GCCL_CONFIG_VERSION
FIELD(commName);
FIELD(collnetEnable);
FIELD(CTAPolicy);
FIELD(shrinkShare);
FIELD(nvlsCTAs);
#endif
#if NCCL_VERSION_CODE >= GCCL_CONFIG_NEW_VERSION && !defined(RCCL)
_Static_assert(sizeof(struct gccl_config) <= sizeof(ncclConfig_t), "a configuration at least as long as the new one");
FIELD(nChannelsPerNetPeer);
FIELD(nvlinkCentricSched);
FIELD(graphUsageMode);
FIELD(numRmaCtx);
FIELD(maxP2pPeers);
FIELD(graphStreamOrdering);
FIELD(launchOrderImplicit);
FIELD(numRmaSig);
FIELD(rmaEagerInit);
FIELD(hostCftMode);
#endif
#endif

int main(void) {
#ifdef NCCL_CONFIG_INITIALIZER
	ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
	if (c.magic != GCCL_CONFIG_MAGIC || c.size != sizeof c) {
		printf("magic %#x and size %zu are not %#x and %zu\n", c.magic, c.size, GCCL_CONFIG_MAGIC, sizeof c);
		return 1;
	}
#endif
	printf("%d\n", NCCL_VERSION_CODE);
	return 0;
}
