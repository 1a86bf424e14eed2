// What comm.c and collective.c share: communicators, and the one mover of data.
#ifndef FAKE_CCL_H
#define FAKE_CCL_H

#include "fake.h"

enum { COLLECTIVE, MESSAGE, CONTROL, KINDS }; // of sockets between two ranks: each is in order by itself
enum { MAX_RANKS = 64, ALIVE = 0x67634c43 };

struct gccl_opaque {
	unsigned magic;
	int rank, size, device, asynchronous, children, idle;
	g_uid id;
	int (*fd)[KINDS], self[KINDS]; // to ourselves: fd writes, self reads
	atomic_int abort, async, pending, settled, operations, inside;
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
int usable(g_comm c, const char *function); // GCCL_SUCCESS, or why not
int group_depth(void);
int group_init(g_comm c, void *(*start)(void *)); // starts c when the group ends
void wait_idle(g_comm c);                         // for the operations under way
int gather(g_comm c, void *mine, void *all, size_t n); // gives all ranks what each has
int warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
