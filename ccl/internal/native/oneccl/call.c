//go:build oneccl && cgo && linux

// A plan is carried out in one call of C, which stops at the first step that fails and takes the library's text
// along, since that belongs to the thread.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "call.h"

enum { // as in plan.go
	ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, ALL_TO_ALL_V, SCATTER, SEND, RECV, MOVE
};

static goneccl T; // a process has one oneCCL

// goneccl_bind fills the table. It returns the first required name that is missing.
const char *goneccl_bind(U so) {
#define GONECCL_BIND(req, ret, name, params) \
	*(void **)&T.name = dlsym((void *)so, "oneccl" #name); \
	if (req && !T.name) return "oneccl" #name;
	GONECCL_FUNCS(GONECCL_BIND)
	return NULL;
}

int goneccl_version(int *v) { return T.GetVersion(v); }
int goneccl_has_scatter(void) { return T.Scatter != NULL; }
int goneccl_has_all_to_all_v(void) { return T.AllToAllV != NULL; }
void goneccl_env(const char *name, const char *value) { setenv(name, value, 1); } // which is unset, or empty

// goneccl_text is the library's words for a result.
static void goneccl_text(int rc, o_comm c, char *text, size_t room) {
	if (!rc) return;
	const char *what = T.GetErrorString(rc), *last = T.GetLastError(c);
	snprintf(text, room, "%s%s%s", what ? what : "no text", last && *last ? ": " : "", last ? last : "");
}

int goneccl_id(void *id, char *text, size_t room) {
	int rc = T.GetUniqueId((o_uid *)id);
	goneccl_text(rc, NULL, text, room);
	return rc;
}

// goneccl_init makes a communicator, on a device of Level Zero if that is not negative: which one is selected belongs to the
// thread, so both are one call.
int goneccl_init(int device, size_t size, const void *id, int rank, U *comm, int *where, char *text, size_t room) {
	int rc = 0;
	*where = 0;
	if (device >= 0) rc = T.SetDevice((uint32_t)device);
	if (!rc) *where = 1, rc = T.CommInitRank((o_comm *)comm, size, *(const o_uid *)id, rank);
	goneccl_text(rc, NULL, text, room);
	return rc;
}

int goneccl_destroy(U comm, char *text, size_t room) {
	int rc = T.CommDestroy((o_comm)comm);
	goneccl_text(rc, NULL, text, room);
	return rc;
}

// goneccl_run carries out steps; queue is 0 for host memory. at is where it stopped.
int goneccl_run(U comm, U queue, const gxpu *x, const goneccl_step *steps, int n, const U *counts, int *at, char *text, size_t room) {
	o_comm c = (o_comm)comm;
	void *q = (void *)queue;
	int rc = 0;
	for (*at = 0; *at < n; ++*at) {
		const goneccl_step *s = steps + *at;
		void *d = (void *)s->dst, *b = (void *)s->src;
		switch (s->what) {
		case ALL_REDUCE: rc = T.AllReduce(b, d, s->count, s->type, s->op, c, q); break;
		case REDUCE: rc = T.Reduce(b, d, s->count, s->type, s->op, s->peer, c, q); break;
		case BROADCAST: rc = T.Broadcast(b, d, s->count, s->type, s->peer, c, q); break;
		case REDUCE_SCATTER: rc = T.ReduceScatter(b, d, s->count, s->type, s->op, c, q); break;
		case ALL_GATHER: rc = T.AllGather(b, d, s->count, s->type, c, q); break;
		case ALL_TO_ALL: rc = T.AllToAll(b, d, s->count, s->type, c, q); break;
		case ALL_TO_ALL_V: rc = T.AllToAllV(b, counts + s->sc, d, counts + s->dc, s->type, c, q); break;
		case SCATTER: rc = T.Scatter(b, d, s->count, s->type, s->peer, c, q); break;
		case SEND: rc = T.Send(b, s->count, s->type, s->peer, c, q); break;
		case RECV: rc = T.Recv(d, s->count, s->type, s->peer, c, q); break;
		case MOVE:
			if (!q) memmove(d, b, s->count);
			else if (x->copy_async(q, d, b, s->count)) {
				snprintf(text, room, "%s", x->error());
				return GONECCL_FAILURE_GPU;
			}
		}
		if (rc) break;
	}
	goneccl_text(rc, c, text, room);
	return rc;
}
