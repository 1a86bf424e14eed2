// The goccl.h of ABI 2, without its comments: a program that was built with it keeps working.
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#ifndef GOCCL_TYPES
#define GOCCL_TYPES
#define GOCCL_ABI 2
enum {
	GOCCL_ALL_REDUCE = 1,
	GOCCL_REDUCE = 2,
	GOCCL_REDUCE_SCATTER = 3,
	GOCCL_REDUCE_SCATTER_V = 4,
	GOCCL_BROADCAST = 5,
	GOCCL_ALL_GATHER = 6,
	GOCCL_ALL_GATHER_V = 7,
	GOCCL_GATHER = 8,
	GOCCL_GATHER_V = 9,
	GOCCL_SCATTER = 10,
	GOCCL_SCATTER_V = 11,
	GOCCL_ALL_TO_ALL = 12,
	GOCCL_ALL_TO_ALL_V = 13,
	GOCCL_SEND = 14,
	GOCCL_RECV = 15,
	GOCCL_SEND_RECV = 16,
	GOCCL_BARRIER = 17
};
enum {
	GOCCL_NONE = 0,
	GOCCL_INT8 = 1,
	GOCCL_UINT8 = 2,
	GOCCL_INT16 = 3,
	GOCCL_UINT16 = 4,
	GOCCL_INT32 = 5,
	GOCCL_UINT32 = 6,
	GOCCL_INT64 = 7,
	GOCCL_UINT64 = 8,
	GOCCL_FLOAT16 = 9,
	GOCCL_BFLOAT16 = 10,
	GOCCL_FLOAT32 = 11,
	GOCCL_FLOAT64 = 12,
	GOCCL_FLOAT8E4M3 = 13,
	GOCCL_FLOAT8E5M2 = 14,
	GOCCL_BOOL = 15,
	GOCCL_COMPLEX64 = 16,
	GOCCL_COMPLEX128 = 17
};
enum {
	GOCCL_SUM = 0,
	GOCCL_PROD = 1,
	GOCCL_MIN = 2,
	GOCCL_MAX = 3,
	GOCCL_AVG = 4,
	GOCCL_BAND = 5,
	GOCCL_BOR = 6,
	GOCCL_BXOR = 7,
	GOCCL_MULSUM = 16
};
enum {
	GOCCL_OK = 0,
	GOCCL_ERR_ARGUMENT = 1,
	GOCCL_ERR_UNSUPPORTED = 2,
	GOCCL_ERR_MISMATCH = 3,
	GOCCL_ERR_RANK_LOST = 4,
	GOCCL_ERR_TIMEOUT = 5,
	GOCCL_ERR_CANCELED = 6,
	GOCCL_ERR_ABORTED = 7,
	GOCCL_ERR_UNAUTHORIZED = 8,
	GOCCL_ERR_VERSION = 9,
	GOCCL_ERR_BACKEND = 10,
	GOCCL_ERR_CLOSED = 11
};
typedef struct goccl_error {
	int32_t code, peer;
	int32_t missing_n, missing[16];
	char text[1024];
} goccl_error;
typedef uint64_t goccl_comm;
typedef struct goccl_store {
	void *ctx;
	int32_t (*set)(void *ctx, const char *key, const void *value, uint64_t n);
	int32_t (*get)(void *ctx, const char *key, int64_t timeout, uintptr_t value);
} goccl_store;
typedef struct goccl_options {
	uint32_t size;
	int32_t rank, ranks;
	int32_t rank_order;
	int64_t open_timeout;
	int64_t timeout;
	int64_t peer_timeout;
	const char *name;
	const char *prefix;
	const char *host;
	goccl_store store;
} goccl_options;
enum { GOCCL_IN_PLACE = 1 };
typedef struct goccl_args {
	int32_t kind, type, op;
	int32_t root;
	int32_t to;
	int32_t flags;
	void *dst;
	const void *src;
	uint64_t dst_n, src_n;
	const int64_t *dst_counts, *src_counts;
	double factor;
	const char *place;
} goccl_args;
typedef void (*goccl_done)(void *ctx, const goccl_error *err);
#define GOCCL_ANY_SOURCE (-1)
typedef void (*goccl_arrived)(void *ctx, int32_t from, const goccl_error *err);
#endif
#if !defined GOCCL_TYPES_ONLY && !defined GOCCL_FUNCTIONS
#define GOCCL_FUNCTIONS
int32_t goccl_abi(void);
const char *goccl_version(void);
int32_t goccl_open(const goccl_options *o, goccl_comm *comm, goccl_error *err);
int32_t goccl_open_later(const goccl_options *o, goccl_comm *comm, goccl_error *err);
int32_t goccl_join(const goccl_options *o, goccl_comm *comm, goccl_error *err);
void goccl_value(uintptr_t value, const void *bytes, uint64_t n);
int32_t goccl_split(goccl_comm comm, int32_t color, int32_t key, goccl_comm *child, goccl_error *err);
int32_t goccl_subset(goccl_comm comm, const int32_t *ranks, int32_t n, int32_t tag, int64_t timeout, goccl_comm *child, goccl_error *err);
int32_t goccl_shrink(goccl_comm comm, goccl_comm *child, goccl_error *err);
int32_t goccl_close(goccl_comm comm, goccl_error *err);
int32_t goccl_abort(goccl_comm comm, const char *why, goccl_error *err);
int32_t goccl_failed(goccl_comm comm, goccl_error *err);
int32_t goccl_rank(goccl_comm comm);
int32_t goccl_size(goccl_comm comm);
int32_t goccl_describe(goccl_comm comm, char *text, uint64_t room, goccl_error *err);
int32_t goccl_supports(goccl_comm comm, int32_t kind, int32_t type, int32_t op, goccl_error *err);
int32_t goccl_call(goccl_comm comm, const goccl_args *calls, int32_t n, int64_t timeout, goccl_done done, void *ctx, goccl_error *err);
int32_t goccl_message(goccl_comm comm, const goccl_args *m, int32_t tag, int64_t timeout, goccl_arrived done, void *ctx, int32_t *from, goccl_error *err);
int32_t goccl_alloc(goccl_comm comm, uint64_t bytes, void **memory, goccl_error *err);
void goccl_free(void *memory);
#endif
#ifdef __cplusplus
}
#endif
