// goccl for C, and for what calls C: libgoccl.so, which
//
//	make install PREFIX=/usr/local
//
// builds and installs, and pkg-config goccl finds. Numbers and structs here are an interface: they are only added to, and GOCCL_ABI is
// raised when one is. A program that was built before keeps working. docs/c.md says how to use it, capi/testdata/sum.c is a program.
//
//   - Any thread may call any function, but one at a time goccl_call on a Comm: all ranks must make its calls in the same order. A
//     thread that comes while another is in goccl_call, until that has queued its calls or made them, gets GOCCL_ERR_ARGUMENT. Threads
//     may take turns. Messages of goccl_message are no calls in that order.
//   - Every function that can fail returns a code, and fills *err where that is not NULL: on success with
//     code 0, peer -1 and an empty text. A call with a callback returns 0; the callback has its error.
//   - Strings are UTF-8 and end with 0. What a caller passes in is not used after the return, except the memory of a call that
//     is queued, and the ctx of its callback, until that callback is called.
//   - goccl_open and goccl_join read the environment as the program has it then, and not as it was started. No other thread may
//     change it meanwhile. goccl_open_later has what the last of them read, or what there was at the start.
//   - The library cannot be unloaded: dlclose leaves it where it is.
//   - A child that was forked from a process with the library cannot use it, unless it calls exec. There every function returns at
//     once: GOCCL_ERR_CLOSED, -1 for a rank or size, an empty version. Callbacks get that error, too.
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GOCCL_TYPES
#define GOCCL_TYPES

// The version of this header. goccl_version and goccl_abi say which the library has.
#define GOCCL_VERSION_MAJOR 0
#define GOCCL_VERSION_MINOR 4
#define GOCCL_VERSION_PATCH 0
#define GOCCL_VERSION "0.4.0-dev"
#define GOCCL_ABI 4

// The kinds of calls.
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

// The types of elements.
enum {
	GOCCL_NONE = 0, // of GOCCL_BARRIER
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
	GOCCL_BOOL = 15, // a byte that is 0 or 1
	GOCCL_COMPLEX64 = 16,
	GOCCL_COMPLEX128 = 17
};

// The operators.
enum {
	GOCCL_SUM = 0,
	GOCCL_PROD = 1,
	GOCCL_MIN = 2,
	GOCCL_MAX = 3,
	GOCCL_AVG = 4,
	GOCCL_BAND = 5,
	GOCCL_BOR = 6,
	GOCCL_BXOR = 7,
	GOCCL_MULSUM = 16 // the sum, multiplied by goccl_args.factor
};

// What can go wrong.
enum {
	GOCCL_OK = 0,
	// A wrong argument. What this library finds wrong, a type, a root or a call that there is not, has
	// no effect; what only the Comm can, such as counts that do not fit, fails it on all ranks.
	GOCCL_ERR_ARGUMENT = 1,
	GOCCL_ERR_UNSUPPORTED = 2,
	GOCCL_ERR_MISMATCH = 3,  // ranks have made different calls
	GOCCL_ERR_RANK_LOST = 4, // rank peer exited or fell silent
	GOCCL_ERR_TIMEOUT = 5,   // missing has the late ranks
	GOCCL_ERR_CANCELED = 6,
	GOCCL_ERR_ABORTED = 7,
	GOCCL_ERR_UNAUTHORIZED = 8,
	GOCCL_ERR_VERSION = 9,
	GOCCL_ERR_BACKEND = 10,
	GOCCL_ERR_CLOSED = 11,
	GOCCL_ERR_UNUSED = 12 // a spare was not needed: the job has ended without it
};

// A failure. Text is one line; missing has the first ranks of those that are late, missing_n how
// many are known: at most 16 where a call has timed out.
typedef struct goccl_error {
	int32_t code, peer; // peer is the rank at fault, or -1
	int32_t missing_n, missing[16];
	char text[1024];
} goccl_error;

// A Comm. 0 is none.
typedef uint64_t goccl_comm;

// goccl_store is where the ranks meet: callbacks to a store of the program. They may be called by
// any thread, one at a time for each Comm, until goccl_open returns; for goccl_open_later until the
// Comm is open or closed. They return 0, or anything else if they have failed.
typedef struct goccl_store {
	void *ctx;
	// set gives key n bytes.
	int32_t (*set)(void *ctx, const char *key, const void *value, uint64_t n);
	// get waits for at most timeout nanoseconds until key has a value, and passes that to
	// goccl_value.
	int32_t (*get)(void *ctx, const char *key, int64_t timeout, uintptr_t value);
} goccl_store;

// Options. What is 0 has its default; durations are nanoseconds. A library with more fields takes those that size leaves out as 0; one
// with fewer refuses options where what it does not know is not 0.
typedef struct goccl_options {
	uint32_t size;         // sizeof(goccl_options)
	int32_t rank, ranks;   // this process's, and how many there are
	int32_t rank_order;    // 1: reduce strictly in the order of ranks
	int64_t open_timeout;  // how long goccl_open waits for the others: 1 minute
	int64_t timeout;       // the longest time that one call may take: 10 minutes; -1: no limit
	int64_t peer_timeout;  // the silence after which a rank counts as lost: 5 seconds; -1: never
	const char *name;      // what errors call the Comm
	const char *prefix;    // of the keys in the store: no other Comm there has it
	const char *host;      // ranks with different ones count as on different hosts
	goccl_store store;
	// Of goccl_open: the last so many of ranks are spares. A spare waits in goccl_open, for as long as it takes, until it
	// has the place of a rank that was lost; then goccl_rank says which. Since ABI 4.
	int64_t spares;
} goccl_options;

enum { GOCCL_IN_PLACE = 1 }; // goccl_args.flags: src is what lies in dst

// goccl_args is one call. Counts are elements. What has no meaning for a kind is ignored, whatever it
// holds: such as op where nothing is reduced, dst of GOCCL_REDUCE and GOCCL_GATHER off the root, src of
// GOCCL_SCATTER there, unless GOCCL_IN_PLACE says that src lies in dst.
typedef struct goccl_args {
	int32_t kind, type, op;
	int32_t root; // or the peer of a message; of GOCCL_SEND_RECV, from which
	int32_t to;   // of GOCCL_SEND_RECV
	int32_t flags;
	void *dst;
	const void *src;
	uint64_t dst_n, src_n;
	const int64_t *dst_counts, *src_counts; // by rank, of the kinds that end in V: those of what is cut, of both for ALL_TO_ALL_V
	double factor;                          // of GOCCL_MULSUM; a Comm has room for 239 different ones
	const char *place;                      // what errors say of where the call is made, such as "train.py:88"; or NULL
} goccl_args;

// goccl_done is called once when a queued call has ended, however; err is NULL if all is well, and
// valid until it returns. A thread of the library calls it, or goccl_call itself. It must be short. It
// may queue calls, but must not wait for calls on the same Comm: a blocking goccl_call, goccl_split and
// goccl_shrink return GOCCL_ERR_ARGUMENT there, at once.
typedef void (*goccl_done)(void *ctx, const goccl_error *err);

// GOCCL_ANY_SOURCE is the peer of a message of goccl_message that may come from any rank.
#define GOCCL_ANY_SOURCE (-1)

// goccl_arrived is goccl_done of goccl_message. from is the rank whose message has been received, -1
// for one that was sent.
typedef void (*goccl_arrived)(void *ctx, int32_t from, const goccl_error *err);

#endif // GOCCL_TYPES

#if !defined GOCCL_TYPES_ONLY && !defined GOCCL_FUNCTIONS
#define GOCCL_FUNCTIONS

// goccl_abi returns the GOCCL_ABI of the library, which is at least that of the program.
int32_t goccl_abi(void);
// goccl_version returns the version of the library, such as "0.3.0".
const char *goccl_version(void);

// goccl_open joins the ranks that meet in o->store. All of them must call it.
int32_t goccl_open(const goccl_options *o, goccl_comm *comm, goccl_error *err);
// goccl_open_later is goccl_open that returns at once. Calls on the Comm are queued until the
// others have come.
int32_t goccl_open_later(const goccl_options *o, goccl_comm *comm, goccl_error *err);
// goccl_join joins the job that a launcher has started this process in. Of o it reads durations,
// rank_order and name. All processes are members: GOCCL_SPARES does not count.
int32_t goccl_join(const goccl_options *o, goccl_comm *comm, goccl_error *err);
// goccl_value is for the callback get: its key has these n bytes.
void goccl_value(uintptr_t value, const void *bytes, uint64_t n);

// goccl_split makes a Comm of the ranks with the same color, ordered by key. All ranks must call
// it. *child is 0 where color is negative.
int32_t goccl_split(goccl_comm comm, int32_t color, int32_t key, goccl_comm *child, goccl_error *err);
// goccl_subset makes a Comm of n ranks of comm, in that order, which they alone call, all with the
// same list and tag, in at most timeout nanoseconds if that is not 0. It is no call of comm: the others
// take no part, and comm may be in any. Since ABI 2.
int32_t goccl_subset(goccl_comm comm, const int32_t *ranks, int32_t n, int32_t tag, int64_t timeout, goccl_comm *child, goccl_error *err);
// goccl_shrink makes a Comm of the ranks that live, after a failure. All of these must call it.
int32_t goccl_shrink(goccl_comm comm, goccl_comm *child, goccl_error *err);
// goccl_replace makes a Comm of as many ranks as comm has, in which spares have the places of the ranks that are lost,
// and all others their numbers. All living ranks of comm must call it; it waits for them at most timeout nanoseconds, if
// that is not 0, and no longer than goccl_options.timeout. comm is a Comm of goccl_open or goccl_replace; close it
// afterwards. Since ABI 4.
int32_t goccl_replace(goccl_comm comm, int64_t timeout, goccl_comm *child, goccl_error *err);
// goccl_fresh writes the first n of the ranks that were spares and have not the state of the others yet, in ascending
// order, the same on all ranks. It returns how many there are, -1 for an invalid handle. Since ABI 4.
int32_t goccl_fresh(goccl_comm comm, int32_t *ranks, int32_t n);
// goccl_restored says that this rank has the state of the others. Since ABI 4.
int32_t goccl_restored(goccl_comm comm, goccl_error *err);
// goccl_waiting returns how many spares wait, as far as this rank knows, -1 for an invalid handle. Since ABI 4.
int32_t goccl_waiting(goccl_comm comm);
// goccl_close leaves a Comm, whose handle is then invalid. It waits for queued calls, at most the
// peer timeout. Its error is a failure of which no call and no callback has told.
int32_t goccl_close(goccl_comm comm, goccl_error *err);
// goccl_abort fails the Comm on all ranks.
int32_t goccl_abort(goccl_comm comm, const char *why, goccl_error *err);
// goccl_failed returns why the Comm has failed, 0 if it has not.
int32_t goccl_failed(goccl_comm comm, goccl_error *err);

// goccl_rank and goccl_size return -1 for an invalid handle, and for a Comm that is not open yet.
int32_t goccl_rank(goccl_comm comm);
int32_t goccl_size(goccl_comm comm);
// goccl_describe writes a line about the Comm, such as "rank 1 of 2 (1 host, cpu, shared memory)",
// cut to room bytes with its 0.
int32_t goccl_describe(goccl_comm comm, char *text, uint64_t room, goccl_error *err);
// goccl_supports says whether such calls can be made.
int32_t goccl_supports(goccl_comm comm, int32_t kind, int32_t type, int32_t op, goccl_error *err);

// goccl_call makes a call, or n as one (as ncclGroupStart and End do), in at most timeout
// nanoseconds if that is not 0. If done is NULL it returns when the call has ended. Else it queues
// the call and returns 0, and done(ctx, err) is called when it has ended, if it was refused, too.
int32_t goccl_call(goccl_comm comm, const goccl_args *calls, int32_t n, int64_t timeout, goccl_done done, void *ctx, goccl_error *err);
// goccl_calls is goccl_call with structs of size bytes, which is sizeof(goccl_args). Fields that come after factor and place in later
// versions count here alone: goccl_call and goccl_message read structs as ABI 2 has them, for ever. What size leaves out, and what the library
// does not know, is as in goccl_options. Since ABI 3.
int32_t goccl_calls(goccl_comm comm, const goccl_args *calls, int32_t n, uint32_t size, int64_t timeout, goccl_done done, void *ctx, goccl_error *err);

// goccl_monitored_barrier is GOCCL_BARRIER, in at most timeout nanoseconds if that is not 0, whose GOCCL_ERR_TIMEOUT has all
// ranks in missing that have not come, up to 16, on all ranks. As any call that does not end it fails the Comm. Since ABI 4.
int32_t goccl_monitored_barrier(goccl_comm comm, int64_t timeout, goccl_error *err);

// goccl_message sends or receives a message beside the calls of comm: in no order with them, and with
// no other rank. m has kind GOCCL_SEND or GOCCL_RECV, type, src or dst, and the peer in root, for
// GOCCL_RECV also GOCCL_ANY_SOURCE. A message is received by a receive of the same tag, sender, type and count;
// those of one sender and tag are received in the order in which they were sent. Tags are not
// negative. timeout is as in goccl_call, but ends this message alone. If done is NULL goccl_message
// returns when the message is complete, and writes to *from whose it is, if from is not NULL. Else it
// returns 0 at once, and done is called. Since ABI 2.
int32_t goccl_message(goccl_comm comm, const goccl_args *m, int32_t tag, int64_t timeout, goccl_arrived done, void *ctx, int32_t *from, goccl_error *err);

// goccl_alloc returns zeroed memory that the ranks of this host can reach, so that calls copy less.
// All ranks of the host must call it; bytes may differ.
int32_t goccl_alloc(goccl_comm comm, uint64_t bytes, void **memory, goccl_error *err);
// goccl_free gives back what goccl_alloc returned.
void goccl_free(void *memory);

#endif // GOCCL_FUNCTIONS

#ifdef __cplusplus
}
#endif
