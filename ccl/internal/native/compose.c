//go:build cgo && linux && (nccl || rccl)

// One call of a Comm, or a group of them, as calls of the library: what it has no call for is composed
// of sends, receives and rooted calls in one group, as nccl.h itself advises for all-to-all.
#include "native.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(call, result) gcclFail(e->ccl, e->comm, &e->fault, call, result)
// DO makes a call of the library and returns its error.
#define DO(name, ...) \
	do { \
		int r_ = e->ccl->name(__VA_ARGS__); \
		if (r_) \
			return FAIL(#name, r_); \
	} while (0)

// parts are the ranks' parts of a vector: of these counts, or equal ones.
typedef struct { const intptr_t *counts; size_t count, scale; } parts;
static size_t part(parts p, int r) { return p.counts ? p.counts[r] * p.scale : p.count; }

static int send(gccl_end *e, const gccl_call *c, U at, size_t n, int peer, g_stream s) {
	if (n)
		DO(Send, (void *)at, n, c->type, peer, e->comm, s);
	return 0;
}

static int recv(gccl_end *e, const gccl_call *c, U at, size_t n, int peer, g_stream s) {
	if (n)
		DO(Recv, (void *)at, n, c->type, peer, e->comm, s);
	return 0;
}

// collect: dst's part r comes from rank r's src. In place, the root's part is where it belongs.
static int collect(gccl_end *e, const gccl_call *c, parts p, g_stream s) {
	U at = c->dst, own = 0;
	if (e->rank == c->root)
		for (int r = 0; r < e->size; at += part(p, r++) * c->width) {
			if (r == e->rank && (own = at) == c->src)
				continue;
			if (recv(e, c, at, part(p, r), r, s))
				return e->fault.result;
		}
	return own == c->src && own ? 0 : send(e, c, c->src, part(p, e->rank), c->root, s);
}

// deal: src's part r goes to rank r's dst.
static int deal(gccl_end *e, const gccl_call *c, parts p, g_stream s) {
	U at = c->src, own = 0;
	if (e->rank == c->root)
		for (int r = 0; r < e->size; at += part(p, r++) * c->width) {
			if (r == e->rank && (own = at) == c->dst)
				continue;
			if (send(e, c, at, part(p, r), r, s))
				return e->fault.result;
		}
	return own == c->dst && own ? 0 : recv(e, c, c->dst, part(p, e->rank), c->root, s);
}

static int exchange(gccl_end *e, const gccl_call *c, parts in, parts out, g_stream s) {
	U to = c->dst, from = c->src;
	for (int r = 0; r < e->size; r++) {
		if (send(e, c, from, part(out, r), r, s) || recv(e, c, to, part(in, r), r, s))
			return e->fault.result;
		from += part(out, r) * c->width;
		to += part(in, r) * c->width;
	}
	return 0;
}

// to_itself is an all-to-all, or a message, of one rank alone: a copy. RCCL 2.27.7 to 2.28.3 hangs
// in its own.
static int to_itself(gccl_end *e, const gccl_call *c, size_t sent, size_t got, g_stream s) {
	if (sent != got)
		return FAIL("Send", GCCL_INVALID_ARGUMENT);
	if (!sent || c->dst == c->src)
		return 0;
	return gcclDeviceFail(e, "MemcpyAsync", e->dev->MemcpyAsync((void *)c->dst, (void *)c->src, sent * c->width, GDEV_DEVICE_TO_DEVICE, s));
}

// one makes a call. Of what composes it makes several, which are in a group.
static int one(gccl_end *e, const gccl_call *c, g_stream s) {
	const gccl_table *t = e->ccl;
	void *dst = (void *)c->dst;
	const void *src = (void *)c->src;
	parts equal = { NULL, c->count, 1 }, in = { c->dc, 0, c->scale }, out = { c->sc, 0, c->scale };
	switch (c->kind) {
	case ALL_REDUCE:
		DO(AllReduce, src, dst, c->count, c->type, c->op, e->comm, s);
		break;
	case REDUCE:
		DO(Reduce, src, dst, c->count, c->type, c->op, c->root, e->comm, s);
		break;
	case REDUCE_SCATTER:
		DO(ReduceScatter, src, dst, c->count, c->type, c->op, e->comm, s);
		break;
	case REDUCE_SCATTER_V:
		for (int r = 0; r < e->size; src = (const char *)src + part(in, r++) * c->width)
			if (part(in, r))
				DO(Reduce, src, r == e->rank ? dst : NULL, part(in, r), c->type, c->op, r, e->comm, s);
		break;
	case BROADCAST:
		DO(Broadcast, e->rank == c->root && src ? src : dst, dst, c->count, c->type, c->root, e->comm, s);
		break;
	case ALL_GATHER:
		DO(AllGather, src, dst, c->count, c->type, e->comm, s);
		break;
	case ALL_GATHER_V:
		for (int r = 0; r < e->size; dst = (char *)dst + part(in, r++) * c->width)
			if (part(in, r))
				DO(Broadcast, r == e->rank ? src : dst, dst, part(in, r), c->type, r, e->comm, s);
		break;
	case GATHER:
		if (!t->Gather || !c->count)
			return collect(e, c, equal, s);
		DO(Gather, src, dst, c->count, c->type, c->root, e->comm, s);
		break;
	case GATHER_V:
		return collect(e, c, in, s);
	case SCATTER:
		if (!t->Scatter || !c->count)
			return deal(e, c, equal, s);
		DO(Scatter, src, dst, c->count, c->type, c->root, e->comm, s);
		break;
	case SCATTER_V:
		return deal(e, c, in, s);
	case ALL_TO_ALL:
		if (e->size == 1)
			return to_itself(e, c, c->count, c->count, s);
		if (t->AlltoAll && c->count)
			DO(AlltoAll, src, dst, c->count, c->type, e->comm, s);
		else if (t->AllToAll && c->count)
			DO(AllToAll, src, dst, c->count, c->type, e->comm, s);
		else
			return exchange(e, c, equal, equal, s);
		break;
	case ALL_TO_ALL_V:
		if (e->size == 1)
			return to_itself(e, c, part(out, 0), part(in, 0), s);
		return exchange(e, c, in, out, s);
	case SEND:
		return send(e, c, c->src, c->count, c->root, s);
	case RECV:
		return recv(e, c, c->dst, c->count, c->root, s);
	case SEND_RECV: {
		if (e->size == 1)
			return to_itself(e, c, c->sent, c->count, s);
		int r = send(e, c, c->src, c->sent, c->to, s);
		return r ? r : recv(e, c, c->dst, c->count, c->root, s);
	}
	case BARRIER:
		DO(AllReduce, e->scratch, e->scratch, 1, GCCL_INT32, GCCL_SUM, e->comm, s);
		break;
	default:
		return FAIL("Group", GCCL_INVALID_ARGUMENT);
	}
	return 0;
}

// single reports whether a call is one of the library's, which needs no group.
static int single(const gccl_call *c) {
	switch (c->kind) {
	case ALL_REDUCE: case REDUCE: case REDUCE_SCATTER: case BROADCAST: case ALL_GATHER: case BARRIER: case SEND: case RECV:
		return 1;
	}
	return 0;
}

// on makes the communicator's device this thread's, as all that the library does there leaves it:
// it puts back what was current before (groupLaunch, src/group.cc), and that would make a context
// on device 0 where nothing was. Since then others may have chosen another device on this thread,
// as marks, allocations and users do. NCCL sets its own all the same. Some of RCCL's ways do not,
// up to 2.30.4, so there the runtime is asked each time.
static inline int on(gccl_end *e) {
	static __thread int device = -1;
	if (device == e->device && !e->asks)
		return 0;
	int r = gcclOn(e);
	if (!r)
		device = e->device;
	return r;
}

static const int ops[] = { GCCL_SUM, GCCL_PROD, GCCL_MIN, GCCL_MAX, GCCL_AVG };

// resolve makes *c the call h in the library's terms, and moves *counts past what are h's.
static void resolve(const gccl_end *e, const gccl_head *h, gccl_call *c, const intptr_t **counts) {
	int reduces = h->kind <= REDUCE_SCATTER_V, type = e->types[h->type];
	*c = (gccl_call){ .kind = h->kind, .type = type, .op = h->op < SCALED ? ops[h->op] : GCCL_SCALED, .root = h->root, .to = h->to,
		.width = e->widths[h->type], .scale = 1, .dst = h->dst, .src = h->src };
	if (type < 0 || (type >= GCCL_FLOAT8E4M3 && !reduces)) { // which not every device has
		c->type = GCCL_UINT8;
		c->scale = c->width;
		c->width = 1;
	}
	c->count = h->count * c->scale;
	c->sent = h->srcN * c->scale;
	memcpy(c->factor, h->factor, sizeof c->factor);
	switch (h->kind) {
	case REDUCE_SCATTER_V: case ALL_GATHER_V: case GATHER_V: case SCATTER_V: case ALL_TO_ALL_V:
		c->dc = *counts;
		*counts += e->size;
	}
	if (h->kind == ALL_TO_ALL_V) {
		c->sc = *counts;
		*counts += e->size;
	}
}

// reduced reports whether h is an all-reduce as the library has it: most calls are, and need nothing else.
static inline int reduced(const gccl_end *e, const gccl_head *h) {
	return h->kind == ALL_REDUCE && h->op < SCALED && e->types[h->type] >= 0;
}

int gcclIssue(U end, const gccl_head *heads, int n, const intptr_t *counts, U stream) {
	gccl_end *e = (gccl_end *)end;
	g_stream s = (g_stream)stream;
	if (n == 1 && reduced(e, heads)) {
		int r = on(e);
		if (r)
			return r;
		r = e->ccl->AllReduce((void *)heads->src, (void *)heads->dst, heads->count, e->types[heads->type], ops[heads->op], e->comm, s);
		return r == GCCL_SUCCESS ? r : FAIL("AllReduce", r);
	}
	gccl_call alone, *calls = &alone;
	if (n > 1) {
		if (n > e->capcalls) {
			if (!(calls = realloc(e->calls, n * sizeof *calls)))
				return FAIL("GroupStart", GCCL_SYSTEM);
			e->calls = calls;
			e->capcalls = n;
		}
		calls = e->calls;
	}
	for (int i = 0; i < n; i++)
		resolve(e, &heads[i], &calls[i], &counts);
	int r = on(e);
	if (r || (r = gcclScaled(e, calls, n)))
		return r;
	if (n == 1 && single(calls))
		return one(e, calls, s);
	if ((r = gcclCopySources(e, calls, n, s)))
		return r;
	if ((r = FAIL("GroupStart", e->ccl->GroupStart()))) {
		gcclFreeSources(e, s);
		return r;
	}
	gccl_fault first;
	for (int i = 0; i < n && !r; i++)
		r = one(e, &calls[i], s);
	if (r)
		first = e->fault;
	// Also after an error: the group belongs to the thread, and Go lends it to others.
	int last = FAIL("GroupEnd", e->ccl->GroupEnd());
	if (r)
		e->fault = first;
	else
		r = last;
	int freed = gcclFreeSources(e, s);
	return r ? r : freed;
}
