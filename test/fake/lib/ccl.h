// What comm.c, mesh.c, split.c, shrink.c and collective.c share: communicators, and the one mover of data.
#ifndef FAKE_CCL_H
#define FAKE_CCL_H

#include "fake.h"

enum { COLLECTIVE, MESSAGE, CONTROL, KINDS }; // of sockets between two ranks: each is in order by itself
enum { MAX_RANKS = 64, ALIVE = 0x67634c43 };

struct gccl_opaque {
	unsigned magic;
	int rank, size, device, asynchronous, children, idle;
	double patience; // seconds that its start waits for ranks
	int connected;  // its first collective has met all ranks
	unsigned long peers[2]; // that a first message to, from has met
	int every;      // each call of an asynchronous one is under way for a while: NCCL since 2.23.4
	int made_on;    // a pending call belongs to the thread that made it
	pthread_t maker;
	int amd;        // HIP has chosen its device: it is RCCL's
	int made;       // its start has succeeded
	unsigned long mates; // the ranks of its host, as bits
	atomic_int proxy;    // the network's error: it outlives ncclCommRevoke
	atomic_int finalized;
	g_uid id;
	char config[256];    // what it was made with
	double factors[256]; // of its operators
	int nfactors, registered, windows;
	int (*fd)[KINDS], self[KINDS]; // to ourselves: fd writes, self reads
	atomic_int abort, async, pending, settled, operations, revoked;
	atomic_int inside, asking; // threads in its calls, and of them in ncclCommGetAsyncError
	atomic_int job;            // a call under way that nobody has joined yet
	atomic_int captured;       // operations that graphs keep
	atomic_ulong issued, turn;
};

// transfer is n bytes to or from a peer: out or in, not both.
typedef struct {
	int peer, kind;
	const char *out;
	char *in;
	size_t n, done;
} transfer;

int exchange(g_comm c, transfer *t, int n); // all at once, until done or aborted
void forget_registered(g_comm c); // and windows: it is freed
int configured(g_comm c, const g_cfg *config); // reads what this version has of it
long fake_version(void);         // what ncclGetVersion says
int lost_peer(g_comm c);         // GCCL_REMOTE, which is the network's error where FAKE_NCCL_NET says so
int usable(g_comm c, const char *function); // GCCL_SUCCESS, or why not
g_comm make_comm(int size, const g_uid *id, int rank, int device, int asynchronous); // a communicator, which launch_comm starts
int launch_comm(g_comm c, g_comm *out);
g_uid child_id(g_comm c, int number, int color); // the id of the next communicator that is made of c
int blocking(const g_cfg *config);
int group_depth(void);
void thread_made(void);  // goccl_fake_threads counts
int on_comm_device(g_comm c); // makes the communicator's device current, as each of its calls does; returns the former
void made_call(g_comm c), other_call(g_comm c); // FAKE_NCCL_JOB=thread: whose the pending call is
int group_init(g_comm c, void *(*start)(void *)); // starts c when the group ends
void wait_idle(g_comm c);                         // for the operations under way
int meet(g_comm c);   // connects a rank to all others
void part(g_comm c);  // ends what meet has made
int gather(g_comm c, void *mine, void *all, size_t n); // gives all ranks what each has
int warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

// What is defined must be what gccl.h declares, and so, by test/vendor, what the vendors do.
#define SAME(required, ret, name, params) extern ret nccl##name params;
GCCL_FUNCS(SAME)
#undef SAME

#endif
