// An operation is a set of transfers between pairs of ranks and a step of arithmetic. It runs on the worker of
// the caller's stream, so it is as asynchronous as on a GPU, and after an error it goes on until it is aborted,
// as a kernel does.
#include "ccl.h"
#include "reduce.h"

enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, SEND, RECV };

enum { SCALED = GCCL_AVG + 1 }; // an operator of a communicator's: its factors have numbers from here on

// header goes before each transfer: both sides must mean the same.
typedef struct { unsigned what, type, op; unsigned long bytes; } header;

typedef struct {
	transfer *t;
	int n;
	char *recv, *parts; // of all ranks, to reduce
	size_t count;
	int what, type, op;
	double factor; // of SCALED
} step;

// job is what one communicator does in one group.
typedef struct {
	work w;
	g_comm c;
	void *stream;
	step *steps;
	int n, captured;
} job;

static int injected(g_comm c, int n, const char *name, int *value) {
	const char *v = knob_text(name);
	int nth = 0, code = 0;
	int hit = v && sscanf(v, "%d:%d", &nth, &code) >= 1 && nth == n && c->rank == knob("NCCL_RANK", c->rank);
	*value = hit ? code : 0;
	return hit;
}

static int disagree(g_comm c, const transfer *t, const header *want, const header *got) {
	warn("rank %d and %d disagree: operation %u type %u op %u of %lu bytes here, %u %u %u %lu there", c->rank, t->peer,
	     want->what, want->type, want->op, want->bytes, got->what, got->type, got->op, got->bytes);
	return GCCL_INVALID_USAGE;
}

// perform is one exchange for the whole group, and the arithmetic.
static int perform(job *j) {
	g_comm c = j->c;
	int total = 0, n = 0, error;
	for (int s = 0; s < j->n; s++)
		total += j->steps[s].n;
	transfer *all = calloc(2 * total + 1, sizeof *all);
	header *sent = calloc(total + 1, sizeof *sent), *got = calloc(total + 1, sizeof *got);
	for (int s = 0, h = 0; s < j->n; s++)
		for (int i = 0; i < j->steps[s].n; i++, h++) {
			step *p = &j->steps[s];
			transfer *t = &p->t[i];
			sent[h] = (header){ p->what, p->type, p->op, t->n };
			all[n++] = (transfer){ t->peer, t->kind, t->out ? (char *)&sent[h] : NULL, t->out ? NULL : (char *)&got[h], sizeof *sent, 0 };
			all[n++] = *t;
		}
	error = exchange(c, all, n);
	for (int h = 0; h < total && !error; h++)
		if (all[2 * h].in && memcmp(&sent[h], &got[h], sizeof *sent))
			error = disagree(c, &all[2 * h], &sent[h], &got[h]);
	for (int s = 0; s < j->n && !error; s++) {
		step *p = &j->steps[s];
		if (p->parts && p->op == SCALED)
			multiply(p->parts, p->count * c->size, p->type, p->factor);
		if (p->parts)
			reduce(p->recv, p->parts, p->count * type_size[p->type], c->size, p->count, p->type, p->op);
	}
	free(all);
	free(sent);
	free(got);
	return error;
}

static unsigned long begin(work *w) {
	job *j = (job *)w;
	j->c->pending++;
	return j->c->issued++;
}

static void run(work *w, unsigned long turn) {
	job *j = (job *)w;
	g_comm c = j->c;
	int n = ++c->operations, error = 0, none;
	while (c->turn != turn && !c->abort) // operations of a communicator are in order, whatever their streams
		usleep(50);
	if (injected(c, n, "NCCL_ASYNC", &error))
		warn("injected asynchronous error %d", error);
	int hangs = injected(c, n, "NCCL_HANG", &none);
	hangs |= c->amd && c->size == 1 && j->steps[0].what == ALL_TO_ALL && knob("RCCL_ALONE", 1); // 2.27.7 to 2.28.3
	if (!error && !hangs && !c->abort)
		error = perform(j);
	if (injected(c, n, "NCCL_WRONG", &none) && !error && j->steps[0].recv && j->steps[0].count)
		j->steps[0].recv[0] ^= 1;
	if (error && !c->abort && !(error == GCCL_REMOTE && knob("NCCL_SILENT_DEATH", 0)))
		c->async = error == GCCL_REMOTE ? lost_peer(c) : error;
	while ((error || hangs) && !c->abort)
		usleep(1000);
	c->turn++;
	c->pending--;
}

static void drop(work *w) {
	job *j = (job *)w;
	for (int s = 0; s < j->n; s++) {
		free(j->steps[s].t);
		free(j->steps[s].parts);
	}
	free(j->steps);
	j->c->captured -= j->captured;
	free(j);
	died(JOB);
}

// Groups belong to the thread.
typedef struct { g_comm c; pthread_t thread; void *(*start)(void *); } starting;
static __thread int depth, failed, njobs, nstarts;
static __thread job *jobs[64];
static __thread starting starts[64];

int group_depth(void) { return depth; }

int group_init(g_comm c, void *(*start)(void *)) {
	if (nstarts == 64)
		return GCCL_INTERNAL;
	starts[nstarts++] = (starting){ .c = c, .start = start };
	return 0;
}

// meet_first is what a communicator does before its first collective, and its first message to or from a rank: connections are made, for
// which all ranks, or that one, must come. It looks at the abort flag. FAKE_NCCL_CONNECT is how many microseconds that takes, or "hang".
static int meet_first(job *j) {
	g_comm c = j->c;
	const char *how = knob_text("NCCL_CONNECT");
	char here = 0, all[4 * MAX_RANKS];
	transfer t[4 * MAX_RANKS];
	int n = 0, collectives = 0;
	if (!how)
		return 0;
	for (int s = 0; s < j->n; s++)
		for (int i = 0; i < j->steps[s].n; i++) {
			transfer *x = &j->steps[s].t[i];
			unsigned long bit = 1UL << x->peer, *met = &c->peers[!x->out];
			if (x->kind != MESSAGE) {
				collectives = !c->connected;
			} else if (!(*met & bit) && x->peer != c->rank) {
				*met |= bit;
				t[n++] = (transfer){ x->peer, CONTROL, &here, NULL, 1, 0 };
				t[n] = (transfer){ x->peer, CONTROL, NULL, &all[n], 1, 0 };
				n++;
			}
		}
	if (!collectives && !n)
		return 0;
	for (int hang = !strcmp(how, "hang"); hang && !c->abort;)
		usleep(1000);
	usleep(knob("NCCL_CONNECT", 0));
	int error = c->abort ? GCCL_INTERNAL : 0;
	if (!error && collectives)
		c->connected = !(error = gather(c, &here, all, 1));
	return error || !n ? error : exchange(c, t, n);
}

static int put(job *j) {
	j->c->captured += j->captured = stream_captures(j->stream);
	return enqueue(j->stream, &j->w, 0) ? GCCL_UNHANDLED_CUDA : 0;
}

// later are operations of communicators that do not block: a thread makes them (groupLaunchNonBlocking, src/group.cc).
typedef struct { job *jobs[64]; int n; } later;

static void *launch_later(void *v) {
	later *k = v;
	usleep(knob("NCCL_SETTLE_US", k->jobs[0]->c->settled ? 50 : 2000));
	for (int i = 0; i < k->n; i++) {
		g_comm c = k->jobs[i]->c;
		int error = meet_first(k->jobs[i]), still = GCCL_IN_PROGRESS;
		if (error)
			drop(&k->jobs[i]->w);
		else
			error = put(k->jobs[i]);
		c->settled = 1;
		atomic_compare_exchange_strong(&c->async, &still, error); // unless it has failed already
		c->pending--;
	}
	free(k);
	return NULL;
}

static void launch(later *k) {
	pthread_t thread;
	later *copy = malloc(sizeof *copy);
	*copy = *k;
	for (int i = 0; i < k->n; i++) {
		g_comm c = k->jobs[i]->c;
		c->async = GCCL_IN_PROGRESS;
		c->job = 1;
		c->pending++;
		made_call(c);
	}
	thread_made();
	pthread_create(&thread, NULL, launch_later, copy);
	pthread_detach(thread);
}

// hides reports whether a call of this kind says Success while it is under way: FAKE_NCCL_HIDE=p2p,coll,alltoall. A lone
// ncclSend does in NCCL 2.14.3 to 2.23.4 (NCCLCHECK(ncclGroupEnd()) drops it, src/collectives.cc).
static int hides(int what) {
	const char *kinds = knob_text("NCCL_HIDE");
	return kinds && strstr(kinds, what >= SEND ? "p2p" : what == ALL_TO_ALL ? "alltoall" : "coll");
}

g_res ncclGroupStart(void) {
	if (!depth++)
		failed = 0;
	return 0;
}

g_res ncclGroupEnd(void) {
	if (!depth)
		return warn("ncclGroupEnd without ncclGroupStart"), GCCL_INVALID_USAGE;
	if (--depth)
		return 0;
	int error = failed;
	for (int i = 0; i < nstarts; i++)
		pthread_create(&starts[i].thread, NULL, starts[i].start, starts[i].c);
	for (int i = 0; i < nstarts; i++) {
		pthread_join(starts[i].thread, NULL);
		error = error ? error : (int)starts[i].c->async;
	}
	later after = { .n = 0 };
	for (int i = 0; i < njobs; i++) {
		job *j = jobs[i];
		g_comm c = j->c;
		if (!error && c->asynchronous && (c->every || !c->settled)) {
			after.jobs[after.n++] = j;
			continue;
		}
		int former = on_comm_device(c);
		c->inside++;
		if (!error)
			error = meet_first(j);
		if (error)
			drop(&j->w);
		else
			error = put(j);
		c->inside--;
		use_device(former);
	}
	nstarts = njobs = 0;
	if (after.n)
		launch(&after);
	return error ? error : after.n ? GCCL_IN_PROGRESS : 0;
}

// plan says who sends what to whom.
static void plan(step *s, g_comm c, int what, const char *send, char *recv, size_t b, int root) {
	s->t = calloc(2 * c->size, sizeof *s->t);
	int kind = what >= SEND ? MESSAGE : COLLECTIVE, me = c->rank;
	for (int p = 0; p < c->size; p++) {
		const char *out = NULL;
		char *in = NULL;
		switch (what) {
		case ALL_REDUCE: out = send, in = s->parts + p * b; break;
		case REDUCE_SCATTER: out = send + p * b, in = s->parts + p * b; break;
		case REDUCE: out = p == root ? send : NULL, in = me == root ? s->parts + p * b : NULL; break;
		case BROADCAST: out = me == root ? send : NULL, in = p == root ? recv : NULL; break;
		case ALL_GATHER: out = send, in = recv + p * b; break;
		case ALL_TO_ALL: out = send + p * b, in = recv + p * b; break;
		case GATHER: out = p == root ? send : NULL, in = me == root ? recv + p * b : NULL; break;
		case SCATTER: out = me == root ? send + p * b : NULL, in = p == root ? recv : NULL; break;
		case SEND: out = p == root ? send : NULL; break;
		case RECV: in = p == root ? recv : NULL; break;
		}
		if (out)
			s->t[s->n++] = (transfer){ p, kind, out, NULL, b, 0 };
		if (in)
			s->t[s->n++] = (transfer){ p, kind, NULL, in, b, 0 };
	}
}

static int add(const char *function, int what, const void *src, void *dst, size_t count, int type, int op, int root, g_comm c, void *stream) {
	int me = c->rank;
	double factor = op >= SCALED && op < SCALED + c->nfactors ? c->factors[op - SCALED] : 1;
	if (op >= SCALED && op < SCALED + c->nfactors)
		op = SCALED;
	else if (op >= SCALED)
		op = -1;
	if (type < 0 || type > GCCL_FLOAT8E5M2 || op < 0)
		return warn("%s : invalid type %d or op %d", function, type, op), GCCL_INVALID_ARGUMENT;
	int reduces = what == ALL_REDUCE || what == REDUCE || what == REDUCE_SCATTER;
	if (type >= GCCL_FLOAT8E4M3 && !c->amd && compute_capability() < 90 && (reduces || fake_version() < 22803)) // ncclEnqueueCheck, src/enqueue.cc
		return warn("%s : FP8 reduction support begins with sm90 capable devices.", function), GCCL_INVALID_ARGUMENT;
	if (root < 0 || root >= c->size)
		return warn("%s : invalid root or peer %d", function, root), GCCL_INVALID_ARGUMENT;
	if (stream_device(stream) != c->device && (uintptr_t)stream > 2)
		return warn("%s : the stream is not one of device %d", function, c->device), GCCL_UNHANDLED_CUDA;
	if (!count && what < SEND)
		return 0;
	size_t b = count * type_size[type];
	int n = c->size, reads = what == BROADCAST || what == SCATTER ? me == root : what != RECV,
	    writes = what == REDUCE || what == GATHER ? me == root : what != SEND;
	const char *from = reads ? reach(src, b * (what == REDUCE_SCATTER || what == ALL_TO_ALL || what == SCATTER ? n : 1)) : NULL;
	char *to = writes ? reach(dst, b * (what == ALL_GATHER || what == ALL_TO_ALL || what == GATHER ? n : 1)) : NULL;
	if (b && ((reads && !from) || (writes && !to)))
		return warn("%s : a buffer is not in memory that was allocated", function), GCCL_INVALID_ARGUMENT;
	job *j = NULL;
	for (int i = 0; i < njobs; i++)
		if (jobs[i]->c == c && jobs[i]->stream == stream)
			j = jobs[i];
	if (!j) {
		if (njobs == 64)
			return GCCL_INTERNAL;
		j = jobs[njobs++] = calloc(1, sizeof *j);
		*j = (job){ .w = { begin, run, drop, 1 }, .c = c, .stream = stream };
		born(JOB);
	}
	j->steps = realloc(j->steps, (j->n + 1) * sizeof *j->steps);
	step *s = &j->steps[j->n++];
	*s = (step){ .recv = to, .count = count, .type = type, .op = op, .what = what == RECV ? SEND : what, .factor = factor };
	if (writes && reduces)
		s->parts = malloc(b * n);
	plan(s, c, what, from, to, b, root);
	return 0;
}

static int issue(const char *function, int what, const void *src, void *dst, size_t count, int type, int op, int root, g_comm c, void *stream) {
	if (c && c->idle) // FAKE_NCCL_IDLE: to measure what a call costs its caller
		return 0;
	int error = usable(c, function);
	if (!error && c->amd && current_device() != c->device && knob("RCCL_CURRENT", 1)) // its direct, copy engine and hierarchical ways, to 2.30.4
		error = (warn("%s : device %d is current, and the communicator is on %d", function, current_device(), c->device), GCCL_UNHANDLED_CUDA);
	if (error) {
		if (depth && !failed)
			failed = error;
		return error;
	}
	other_call(c);
	ncclGroupStart();
	error = add(function, what, src, dst, count, type, op, root, c, stream);
	if (error && !failed)
		failed = error;
	int end = ncclGroupEnd();
	return error ? error : end == GCCL_IN_PROGRESS && hides(what) ? 0 : end;
}

#define ISSUE(what, src, dst, op, root) return issue(__func__, what, src, dst, n, type, op, root, c, s)
g_res ncclAllReduce(const void *src, void *dst, size_t n, g_dtype type, g_op op, g_comm c, g_stream s) { ISSUE(ALL_REDUCE, src, dst, op, 0); }
g_res ncclBroadcast(const void *src, void *dst, size_t n, g_dtype type, int root, g_comm c, g_stream s) { ISSUE(BROADCAST, src, dst, 0, root); }
g_res ncclReduce(const void *src, void *dst, size_t n, g_dtype type, g_op op, int root, g_comm c, g_stream s) { ISSUE(REDUCE, src, dst, op, root); }
g_res ncclAllGather(const void *src, void *dst, size_t n, g_dtype type, g_comm c, g_stream s) { ISSUE(ALL_GATHER, src, dst, 0, 0); }
g_res ncclReduceScatter(const void *src, void *dst, size_t n, g_dtype type, g_op op, g_comm c, g_stream s) { ISSUE(REDUCE_SCATTER, src, dst, op, 0); }
g_res ncclAlltoAll(const void *src, void *dst, size_t n, g_dtype type, g_comm c, g_stream s) { ISSUE(ALL_TO_ALL, src, dst, 0, 0); }
g_res ncclAllToAll(const void *src, void *dst, size_t n, g_dtype type, g_comm c, g_stream s) { ISSUE(ALL_TO_ALL, src, dst, 0, 0); }
g_res ncclGather(const void *src, void *dst, size_t n, g_dtype type, int root, g_comm c, g_stream s) { ISSUE(GATHER, src, dst, 0, root); }
g_res ncclScatter(const void *src, void *dst, size_t n, g_dtype type, int root, g_comm c, g_stream s) { ISSUE(SCATTER, src, dst, 0, root); }
g_res ncclSend(const void *src, size_t n, g_dtype type, int peer, g_comm c, g_stream s) { ISSUE(SEND, src, NULL, 0, peer); }
g_res ncclRecv(void *dst, size_t n, g_dtype type, int peer, g_comm c, g_stream s) { ISSUE(RECV, NULL, dst, 0, peer); }
