//go:build cgo && unix

// The functions of include/goccl.h. Each enters Go, which has threads that a forked child has not: there a call into Go may wait for one of
// them for ever, or for a lock that one held. So in such a child none enters Go.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goccl.h"
#include "_cgo_export.h"

#pragma GCC diagnostic error "-Wmissing-prototypes" // what is defined here is declared in goccl.h

enum { most_calls = 1 << 20 }; // as call.go has it

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

// bad is an error of an argument.
static int32_t bad(goccl_error *err, const char *what, uint64_t size, uint64_t least) {
	if (err) {
		memset(err, 0, sizeof *err);
		err->code = GOCCL_ERR_ARGUMENT, err->peer = -1;
		snprintf(err->text, sizeof err->text, "goccl: %s.size is %llu; it is sizeof(%s), at least %llu, and what lies behind the %s of ABI %d must be 0", what,
			(unsigned long long)size, what, (unsigned long long)least, what, GOCCL_ABI);
	}
	return GOCCL_ERR_ARGUMENT;
}

// fits says whether a struct of a program with size bytes can be read as one of the library's with known: what an older program has not is
// 0, and so is what a newer one has that this library does not know.
static int fits(const void *p, uint64_t size, uint64_t least, uint64_t known) {
	if (size < least || size > 1 << 16)
		return 0;
	for (uint64_t i = known; i < size; i++)
		if (((const char *)p)[i])
			return 0;
	return 1;
}

enum { // the structs of ABI 1 and 2
	first_options = offsetof(goccl_options, store) + sizeof(goccl_store),
	first_args = offsetof(goccl_args, place) + sizeof(char *),
};

// widen makes options of a program's. It returns 0 if it cannot.
static int widen(goccl_options *wide, const goccl_options **o) {
	if (!*o)
		return 1; // Go says what that means
	if (!fits(*o, (*o)->size, first_options, sizeof *wide))
		return 0;
	memset(wide, 0, sizeof *wide);
	memcpy(wide, *o, (*o)->size < sizeof *wide ? (*o)->size : sizeof *wide);
	*o = wide;
	return 1;
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

// enter opens a Comm by how.
static int32_t enter(int32_t (*how)(goccl_options *, goccl_comm *, goccl_error *), const goccl_options *o, goccl_comm *comm, goccl_error *err) {
	goccl_options wide;
	if (forked)
		return no_comm(comm, err);
	if (comm)
		*comm = 0;
	return widen(&wide, &o) ? how((goccl_options *)o, comm, err) : bad(err, "goccl_options", o->size, first_options);
}

int32_t goccl_abi(void) { return GOCCL_ABI; }

const char *goccl_version(void) { return forked ? "" : gocclgo_version(); }

int32_t goccl_open(const goccl_options *o, goccl_comm *comm, goccl_error *err) { return enter(gocclgo_open, o, comm, err); }

int32_t goccl_open_later(const goccl_options *o, goccl_comm *comm, goccl_error *err) { return enter(gocclgo_open_later, o, comm, err); }

int32_t goccl_join(const goccl_options *o, goccl_comm *comm, goccl_error *err) { return enter(gocclgo_join, o, comm, err); }

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

int32_t goccl_replace(goccl_comm comm, int64_t timeout, goccl_comm *child, goccl_error *err) {
	return forked ? no_comm(child, err) : gocclgo_replace(comm, timeout, child, err);
}

int32_t goccl_fresh(goccl_comm comm, int32_t *ranks, int32_t n) { return forked ? -1 : gocclgo_fresh(comm, ranks, n); }

int32_t goccl_restored(goccl_comm comm, goccl_error *err) { return forked ? refused(err) : gocclgo_restored(comm, err); }

int32_t goccl_waiting(goccl_comm comm) { return forked ? -1 : gocclgo_waiting(comm); }

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
	return goccl_calls(comm, calls, n, first_args, timeout, done, ctx, err);
}

int32_t goccl_calls(goccl_comm comm, const goccl_args *calls, int32_t n, uint32_t size, int64_t timeout, goccl_done done, void *ctx, goccl_error *err) {
	goccl_error e;
	int32_t code;
	if (forked) {
		code = refused(&e);
	} else if (size == sizeof(goccl_args) || !calls || n < 1) { // Go says what is wrong with none
		return gocclgo_call(comm, (goccl_args *)calls, n, timeout, done, (uintptr_t)ctx, err);
	} else {
		goccl_args one, *wide = n == 1 ? &one : n > most_calls ? NULL : calloc(n, sizeof *wide);
		int good = size >= first_args && wide;
		for (int32_t i = 0; good && i < n; i++) {
			const char *from = (const char *)calls + (uint64_t)i * size;
			good = fits(from, size, first_args, sizeof *wide);
			memset(&wide[i], 0, sizeof *wide);
			if (good)
				memcpy(&wide[i], from, size < sizeof *wide ? size : sizeof *wide);
		}
		code = good ? gocclgo_call(comm, wide, n, timeout, done, (uintptr_t)ctx, err) : bad(&e, "goccl_args", size, first_args);
		if (wide != &one)
			free(wide);
		if (good)
			return code;
	}
	if (!done) {
		if (err)
			*err = e;
		return code;
	}
	done(ctx, &e);
	return told(err);
}

int32_t goccl_monitored_barrier(goccl_comm comm, int64_t timeout, goccl_error *err) {
	return forked ? refused(err) : gocclgo_monitored_barrier(comm, timeout, err);
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
