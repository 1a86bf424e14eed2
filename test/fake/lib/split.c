// Communicators that are made of others.
#define _GNU_SOURCE
#include "ccl.h"

// child is the id of the next communicator that is made of c.
g_uid child_id(g_comm c, int number, int color) {
	g_uid id = c->id;
	size_t n = strlen(id.internal);
	snprintf(id.internal + n, sizeof id.internal - n, ".%d.%x", number, color);
	return id;
}

typedef struct { g_comm parent, *out; int color, key, number, asynchronous; } splitting;

static int split(splitting *s) {
	g_comm c = s->parent;
	int mine[2] = { s->color, s->key }, all[MAX_RANKS][2], n = 0, rank = 0, error = gather(c, mine, all, sizeof mine);
	if (error || s->color == GCCL_SPLIT_NOCOLOR)
		return error;
	for (int p = 0; p < c->size; p++)
		if (all[p][0] == s->color) {
			n++;
			rank += all[p][1] < s->key || (all[p][1] == s->key && p < c->rank);
		}
	g_uid id = child_id(c, s->number, s->color);
	error = launch_comm(make_comm(n, &id, rank, c->device, s->asynchronous), s->out);
	return error == GCCL_IN_PROGRESS ? 0 : error;
}

static void *split_later(void *v) {
	splitting *s = v;
	long late = knob("NCCL_SPLIT_LATE_US", 0);
	g_comm made = NULL, *out = s->out;
	if (late)
		s->out = &made;
	int error = split(s);
	if (late) { // as ncclCommInitRankFunc, init.cc of NCCL 2.18 on: at its exit, after a failure too
		usleep(late);
		*out = made;
	}
	s->parent->async = error;
	s->parent->pending--;
	free(s);
	return NULL;
}

g_res ncclCommSplit(g_comm c, int color, int key, g_comm *out, g_cfg *config) {
	int error = usable(c, __func__);
	if (error)
		return error;
	*out = NULL;
	splitting s = { c, out, color, key, c->children++, config ? !blocking(config) : c->asynchronous };
	if (!c->asynchronous)
		return split(&s);
	pthread_t thread;
	splitting *later = malloc(sizeof *later);
	*later = s;
	c->async = GCCL_IN_PROGRESS;
	c->pending++;
	pthread_create(&thread, NULL, split_later, later);
	pthread_detach(thread);
	return GCCL_IN_PROGRESS;
}
