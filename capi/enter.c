//go:build cgo && unix

// The functions of include/goccl.h. Each enters Go, which has threads that a forked child has not: there a call into Go may wait for one of
// them for ever, or for a lock that one held. So in such a child none enters Go.
#include <pthread.h>
#include <string.h>

#include "goccl.h"
#include "_cgo_export.h"

#pragma GCC diagnostic error "-Wmissing-prototypes" // what is defined here is declared in goccl.h

static int forked; // written only by a thread that is alone

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch(void) { pthread_atfork(NULL, NULL, in_child); }

// refused is the error of a forked child.
static int32_t refused(goccl_error *err) {
	if (err) {
		memset(err, 0, sizeof *err);
		err->code = GOCCL_ERR_CLOSED, err->peer = -1;
		strcpy(err->text, "goccl: this process is a forked child of one that has loaded the library; only the parent may use it: start a program here (exec) instead");
	}
	return GOCCL_ERR_CLOSED;
}

// told is the return of a call whose error its callback has.
static int32_t told(goccl_error *err) {
	if (err)
		err->code = GOCCL_OK, err->peer = -1, err->missing_n = 0, err->text[0] = 0;
	return GOCCL_OK;
}

static int32_t no_comm(goccl_comm *comm, goccl_error *err) {
	if (comm)
		*comm = 0;
	return refused(err);
}

int32_t goccl_abi(void) { return GOCCL_ABI; }

const char *goccl_version(void) { return forked ? "" : gocclgo_version(); }

int32_t goccl_open(const goccl_options *o, goccl_comm *comm, goccl_error *err) {
	return forked ? no_comm(comm, err) : gocclgo_open((goccl_options *)o, comm, err);
}

int32_t goccl_open_later(const goccl_options *o, goccl_comm *comm, goccl_error *err) {
	return forked ? no_comm(comm, err) : gocclgo_open_later((goccl_options *)o, comm, err);
}

int32_t goccl_join(const goccl_options *o, goccl_comm *comm, goccl_error *err) {
	return forked ? no_comm(comm, err) : gocclgo_join((goccl_options *)o, comm, err);
}

void goccl_value(uintptr_t value, const void *bytes, uint64_t n) {
	if (!forked)
		gocclgo_value(value, (void *)bytes, n);
}

int32_t goccl_split(goccl_comm comm, int32_t color, int32_t key, goccl_comm *child, goccl_error *err) {
	return forked ? no_comm(child, err) : gocclgo_split(comm, color, key, child, err);
}

int32_t goccl_subset(goccl_comm comm, const int32_t *ranks, int32_t n, int32_t tag, int64_t timeout, goccl_comm *child, goccl_error *err) {
	return forked ? no_comm(child, err) : gocclgo_subset(comm, (int32_t *)ranks, n, tag, timeout, child, err);
}

int32_t goccl_shrink(goccl_comm comm, goccl_comm *child, goccl_error *err) {
	return forked ? no_comm(child, err) : gocclgo_shrink(comm, child, err);
}

int32_t goccl_close(goccl_comm comm, goccl_error *err) { return forked ? refused(err) : gocclgo_close(comm, err); }

int32_t goccl_abort(goccl_comm comm, const char *why, goccl_error *err) { return forked ? refused(err) : gocclgo_abort(comm, (char *)why, err); }

int32_t goccl_failed(goccl_comm comm, goccl_error *err) { return forked ? refused(err) : gocclgo_failed(comm, err); }

int32_t goccl_rank(goccl_comm comm) { return forked ? -1 : gocclgo_rank(comm); }

int32_t goccl_size(goccl_comm comm) { return forked ? -1 : gocclgo_size(comm); }

int32_t goccl_describe(goccl_comm comm, char *text, uint64_t room, goccl_error *err) {
	return forked ? refused(err) : gocclgo_describe(comm, text, room, err);
}

int32_t goccl_supports(goccl_comm comm, int32_t kind, int32_t type, int32_t op, goccl_error *err) {
	return forked ? refused(err) : gocclgo_supports(comm, kind, type, op, err);
}

int32_t goccl_call(goccl_comm comm, const goccl_args *calls, int32_t n, int64_t timeout, goccl_done done, void *ctx, goccl_error *err) {
	goccl_error e;
	if (!forked)
		return gocclgo_call(comm, (goccl_args *)calls, n, timeout, done, (uintptr_t)ctx, err);
	if (!done)
		return refused(err);
	refused(&e);
	done(ctx, &e);
	return told(err);
}

int32_t goccl_message(goccl_comm comm, const goccl_args *m, int32_t tag, int64_t timeout, goccl_arrived done, void *ctx, int32_t *from, goccl_error *err) {
	goccl_error e;
	if (!forked)
		return gocclgo_message(comm, (goccl_args *)m, tag, timeout, done, (uintptr_t)ctx, from, err);
	if (!done) {
		if (from)
			*from = -1;
		return refused(err);
	}
	refused(&e);
	done(ctx, -1, &e);
	return told(err);
}

int32_t goccl_alloc(goccl_comm comm, uint64_t bytes, void **memory, goccl_error *err) {
	if (!forked)
		return gocclgo_alloc(comm, bytes, memory, err);
	if (memory)
		*memory = NULL;
	return refused(err);
}

void goccl_free(void *memory) {
	if (!forked)
		gocclgo_free(memory);
}
