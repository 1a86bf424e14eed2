// The calls of NCCL and RCCL, which export the same names. No vendor header is needed to build:
// GCCL_FUNCS is the whole binding, from which the table of functions and its loader are made.
// test/vendor compiles this very table against the vendors' headers, with their types for ours
// (GCCL_VENDOR_TYPES), so a row that differs from a header does not compile there.
#ifndef GCCL_H
#define GCCL_H

#include <stddef.h>
#include <stdint.h>

#ifndef GCCL_VENDOR_TYPES
typedef int g_res, g_dtype, g_op, g_resid, g_memstat; // C enums in the vendors' headers: 4 bytes
typedef struct gccl_opaque *g_comm;
typedef struct { char internal[128]; } g_uid; // ncclUniqueId, passed by value
typedef struct gccl_config g_cfg;
typedef void *g_stream;
typedef struct gccl_window *g_win; // 2.27
#endif

// gccl_config is ncclConfig_t of NCCL 2.31. The library copies min(size, the size it knows) bytes
// and takes what is newer than `version` from its defaults, so this one struct serves all of NCCL
// >= 2.14 and RCCL of ROCm >= 5.7. Older versions have the fields up to GCCL_CONFIG_OLD_SIZE, or
// fewer.
struct gccl_config {
	size_t size;
	unsigned magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs; // the last three and netName: 2.17
	const char *netName;
	int splitShare, trafficClass; // 2.18, 2.26
	const char *commName; // this and what follows: 2.27
	int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs;
	int nChannelsPerNetPeer, nvlinkCentricSched, graphUsageMode, numRmaCtx, maxP2pPeers, graphStreamOrdering; // this and what follows: 2.31
	int launchOrderImplicit, numRmaSig, rmaEagerInit, hostCftMode;
};
#define GCCL_CONFIG_MAGIC 0xcafebeefu
#define GCCL_CONFIG_NEW_VERSION 23100
#define GCCL_CONFIG_VERSION 22700
#define GCCL_CONFIG_SIZE offsetof(struct gccl_config, nChannelsPerNetPeer)
#define GCCL_CONFIG_OLD_VERSION 21800
#define GCCL_CONFIG_OLD_SIZE offsetof(struct gccl_config, commName)
#define GCCL_UNDEF_INT ((int)0x80000000)

enum {
	GCCL_INT8, GCCL_UINT8, GCCL_INT32, GCCL_UINT32, GCCL_INT64, GCCL_UINT64,
	GCCL_FLOAT16, GCCL_FLOAT32, GCCL_FLOAT64, GCCL_BFLOAT16,
	GCCL_FLOAT8E4M3, GCCL_FLOAT8E5M2 // NCCL >= 2.24, RCCL >= 2.20
};
enum { GCCL_SUM, GCCL_PROD, GCCL_MAX, GCCL_MIN, GCCL_AVG };
enum {
	GCCL_SUCCESS, GCCL_UNHANDLED_CUDA, GCCL_SYSTEM, GCCL_INTERNAL, GCCL_INVALID_ARGUMENT,
	GCCL_INVALID_USAGE, GCCL_REMOTE /* 2.13 */, GCCL_IN_PROGRESS /* 2.14 */, GCCL_TIMEOUT /* 2.30 */
};
enum { GCCL_SCALAR_DEVICE, GCCL_SCALAR_HOST }; // g_resid: of host memory it is read at once
#define GCCL_SPLIT_NOCOLOR (-1)
#define GCCL_WIN_COLL_SYMMETRIC 1 // ncclCommWindowRegister's flag: all ranks at once, of equal sizes
#define GCCL_WIN_ALIGNMENT 4096   // of its memory, since 2.28
#define GCCL_MEM_TOTAL 3 // g_memstat: bytes of the device in all
#define GCCL_SHRINK_ABORT 1 // as ncclCommShrink's flag: end the parent's calls under way first

// X(required, return, name, parameters)
#define GCCL_FUNCS(X) \
	X(1, g_res, GetVersion, (int *)) \
	X(1, g_res, GetUniqueId, (g_uid *)) \
	X(1, const char *, GetErrorString, (g_res)) \
	X(0, const char *, GetLastError, (g_comm)) \
	X(1, g_res, CommInitRank, (g_comm *, int, g_uid, int)) \
	X(0, g_res, CommInitRankConfig, (g_comm *, int, g_uid, int, g_cfg *)) \
	X(0, g_res, CommInitRankScalable, (g_comm *, int, int, int, g_uid *, g_cfg *)) \
	X(0, g_res, CommFinalize, (g_comm)) \
	X(1, g_res, CommDestroy, (g_comm)) \
	X(1, g_res, CommAbort, (g_comm)) \
	X(1, g_res, CommGetAsyncError, (g_comm, g_res *)) \
	X(0, g_res, CommSplit, (g_comm, int, int, g_comm *, g_cfg *)) \
	X(0, g_res, CommShrink, (g_comm, int *, int, g_comm *, g_cfg *, int)) \
	X(0, g_res, CommRevoke, (g_comm, int)) \
	X(0, g_res, CommMemStats, (g_comm, g_memstat, uint64_t *)) \
	X(0, g_res, MemAlloc, (void **, size_t)) \
	X(0, g_res, MemFree, (void *)) \
	X(0, g_res, CommRegister, (g_comm, void *, size_t, void **)) \
	X(0, g_res, CommDeregister, (g_comm, void *)) \
	X(0, g_res, CommWindowRegister, (g_comm, void *, size_t, g_win *, int)) \
	X(0, g_res, CommWindowDeregister, (g_comm, g_win)) \
	X(0, g_res, RedOpCreatePreMulSum, (g_op *, void *, g_dtype, g_resid, g_comm)) \
	X(1, g_res, AllReduce, (const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream)) \
	X(1, g_res, Broadcast, (const void *, void *, size_t, g_dtype, int, g_comm, g_stream)) \
	X(1, g_res, Reduce, (const void *, void *, size_t, g_dtype, g_op, int, g_comm, g_stream)) \
	X(1, g_res, AllGather, (const void *, void *, size_t, g_dtype, g_comm, g_stream)) \
	X(1, g_res, ReduceScatter, (const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream)) \
	X(0, g_res, AlltoAll, (const void *, void *, size_t, g_dtype, g_comm, g_stream)) \
	X(0, g_res, AllToAll, (const void *, void *, size_t, g_dtype, g_comm, g_stream)) \
	X(0, g_res, Gather, (const void *, void *, size_t, g_dtype, int, g_comm, g_stream)) \
	X(0, g_res, Scatter, (const void *, void *, size_t, g_dtype, int, g_comm, g_stream)) \
	X(1, g_res, Send, (const void *, size_t, g_dtype, int, g_comm, g_stream)) \
	X(1, g_res, Recv, (void *, size_t, g_dtype, int, g_comm, g_stream)) \
	X(1, g_res, GroupStart, (void)) \
	X(1, g_res, GroupEnd, (void))

#define GCCL_POINTER(required, ret, name, params) ret(*name) params;
typedef struct { GCCL_FUNCS(GCCL_POINTER) } gccl_table;

#endif
