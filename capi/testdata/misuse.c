// Two processes that misuse the library: in callbacks, by handles, lengths and threads. Each mistake is
// an error at once, and the Comm is good afterwards. Prints what is not as it should be, and returns how
// much that is.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "goccl.h"

static int wrong, me;
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "rank %d, line %d: %s: %d %s\n", me, __LINE__, #x, err.code, err.text), __atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST); \
} while (0)

static goccl_error err;
static goccl_args barrier = { .kind = GOCCL_BARRIER };

static void on_done(void *ctx, const goccl_error *e) { __atomic_store_n((int *)ctx, e ? e->code : 100, __ATOMIC_SEQ_CST); }

static int wait_for(int *ended) {
	while (!__atomic_load_n(ended, __ATOMIC_SEQ_CST))
		usleep(100);
	return *ended;
}

// What waits for a Comm's calls in a callback of that Comm would wait for itself.
static struct { goccl_comm comm, other; int ended, refused; } in;
static void waits(void *ctx, const goccl_error *e) {
	goccl_error err;
	goccl_comm child = 7;
	in.refused += goccl_split(in.comm, 0, 0, &child, &err) == GOCCL_ERR_ARGUMENT && !child && strstr(err.text, "in a callback of the same Comm");
	in.refused += goccl_shrink(in.comm, &child, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "in a callback of the same Comm");
	in.refused += goccl_call(in.comm, &barrier, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "in a callback of the same Comm");
	on_done(ctx, e);
}
// A callback that another one waits for is inside that one: its thread is in a callback of both Comms.
static void nested(void *ctx, const goccl_error *e) {
	goccl_args bad = { .kind = 77 };
	goccl_call(in.other, &bad, 1, 0, waits, ctx, NULL);
}
// But it may make calls on another Comm.
static void elsewhere(void *ctx, const goccl_error *e) {
	goccl_error err;
	in.refused += goccl_call(in.other, &barrier, 1, 0, NULL, NULL, &err) == 0;
	on_done(ctx, e);
}

static void callbacks(goccl_comm c) {
	in.comm = c;
	CHECK(goccl_split(c, 0, 0, &in.other, &err) == 0);
	CHECK(goccl_call(c, &barrier, 1, 0, waits, &in.ended, &err) == 0 && wait_for(&in.ended) == 100 && in.refused == 3);
	in.ended = in.refused = 0;
	CHECK(goccl_call(c, &barrier, 1, 0, nested, &in.ended, &err) == 0 && wait_for(&in.ended) == GOCCL_ERR_ARGUMENT && in.refused == 3);
	in.ended = in.refused = 0;
	CHECK(goccl_call(c, &barrier, 1, 0, elsewhere, &in.ended, &err) == 0 && wait_for(&in.ended) == 100 && in.refused == 1);
	CHECK(goccl_call(c, &barrier, 1, 0, NULL, NULL, &err) == 0 && goccl_close(in.other, &err) == 0);
}

// Lengths and addresses that there cannot be; the Comm is not left locked by them.
static void lengths(goccl_comm c) {
	static const struct { intptr_t at; uint64_t n; } bad[] = {
		{ 0, 1 }, { 7, 1 }, { 4095, 1 }, { -4096, 1 << 20 }, { -16, 1 }, { 65536, UINT64_MAX }, { 65536, 1ull << 63 }, { 65536, 1ull << 60 }, { -1, 1ull << 55 }, { 65536, INT64_MAX },
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		goccl_args a = { .kind = GOCCL_BROADCAST, .type = GOCCL_COMPLEX128, .dst = (void *)bad[i].at, .dst_n = bad[i].n };
		int ended = 0;
		CHECK(goccl_call(c, &a, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "elements at"));
		CHECK(goccl_call(c, &a, 1, 0, on_done, &ended, &err) == 0 && ended == GOCCL_ERR_ARGUMENT);
		goccl_args m = { .kind = GOCCL_SEND, .type = GOCCL_COMPLEX128, .root = !me, .src = (void *)bad[i].at, .src_n = bad[i].n };
		CHECK(goccl_message(c, &m, 1, 0, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	}
	goccl_args one = barrier;
	CHECK(goccl_call(c, &one, 0, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_call(c, &one, INT32_MAX, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_call(c, &one, INT32_MIN, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_call(c, &one, 1, -1, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	goccl_args m = { .kind = GOCCL_SEND, .type = GOCCL_INT8, .root = 99 };
	CHECK(goccl_message(c, &m, 1, 0, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	m.root = !me;
	CHECK(goccl_message(c, &m, -1, 0, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_message(c, &m, 1, INT64_MIN, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	int32_t twice[2] = { 0, 0 }, outside[2] = { 0, 5 };
	goccl_comm child;
	CHECK(goccl_subset(c, twice, 2, 1, 0, &child, &err) == GOCCL_ERR_ARGUMENT && child == 0);
	CHECK(goccl_subset(c, outside, 2, 1, 0, &child, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_subset(c, twice, INT32_MIN, 1, 0, &child, &err) == GOCCL_ERR_ARGUMENT);
	void *p = &p;
	CHECK(goccl_alloc(c, UINT64_MAX, &p, &err) == GOCCL_ERR_ARGUMENT && p == NULL);
	char text[8] = "abcdefg";
	CHECK(goccl_describe(c, text, 0, &err) == 0 && !strcmp(text, "abcdefg"));
	CHECK(goccl_describe(c, NULL, 100, &err) == 0);
	CHECK(goccl_describe(c, text, 1, &err) == 0 && text[0] == 0 && text[1] == 'b');
	for (uintptr_t v = 0; v < 50; v++) // no value is asked for now
		goccl_value(v, text, v ? UINT64_MAX : 1);
	CHECK(goccl_call(c, &barrier, 1, 0, NULL, NULL, &err) == 0);
}

// Strings are UTF-8, where they are cut, too: place is long, and has characters of three bytes.
static int valid_utf8(const char *s) {
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		int more = *p < 0x80 ? 0 : *p >> 5 == 6 ? 1 : *p >> 4 == 14 ? 2 : *p >> 3 == 30 ? 3 : -1;
		for (; more > 0 && p[1] >> 6 == 2; more--)
			p++;
		if (more)
			return 0;
	}
	return 1;
}
static void texts(goccl_comm c) {
	for (int shift = 0; shift < 3; shift++) {
		goccl_comm half;
		CHECK(goccl_split(c, me, 0, &half, &err) == 0);
		char place[4000] = "xxx";
		for (int at = shift; at + 3 < (int)sizeof place; at += 3)
			memcpy(place + at, "\xe2\x82\xac", 4);
		CHECK(goccl_abort(half, place, &err) == 0);
		while (!goccl_failed(half, &err)) {}
		CHECK(strlen(err.text) > 1000 && valid_utf8(err.text));
		goccl_close(half, NULL);
	}
}

// Options that there cannot be. None waits.
static int32_t set(void *ctx, const char *key, const void *value, uint64_t n) { return 0; }
static int32_t get(void *ctx, const char *key, int64_t timeout, uintptr_t value) {
	static unsigned char noise[1 << 16];
	unsigned seed = *(int *)ctx;
	for (unsigned i = 0; i < sizeof noise; i++)
		noise[i] = rand_r(&seed) >> 3;
	goccl_value(value, noise, seed % 3 ? seed % sizeof noise : seed % 100);
	return 0;
}
static void options(void) {
	int seed = 1;
	goccl_comm c = 7;
	goccl_options good = { .size = sizeof good, .rank = 1, .ranks = 2, .prefix = "x", .open_timeout = 20000000000, .store = { &seed, set, get } }, o;
#define REFUSED(change) do { \
	o = good; \
	change; \
	CHECK(goccl_open(&o, &c, &err) == GOCCL_ERR_ARGUMENT && c == 0); \
	CHECK(goccl_open_later(&o, &c, &err) == GOCCL_ERR_ARGUMENT && c == 0); \
} while (0)
	REFUSED(o.size = 0);
	REFUSED(o.size = UINT32_MAX);
	REFUSED(o.rank = -1);
	REFUSED(o.rank = 2);
	REFUSED(o.ranks = 0);
	REFUSED(o.ranks = INT32_MIN);
	REFUSED(o.store.get = NULL);
	REFUSED(o.open_timeout = -1);
	for (seed = 1; seed < 100; seed++) // a store that answers with noise
		CHECK(goccl_open(&good, &c, &err) != 0 && c == 0 && err.code != GOCCL_ERR_TIMEOUT);
}

// Threads that close one Comm, while others ask about it: one of them closes it.
static struct { goccl_comm comm; int closed, refused, bad; } race;
static void *closes(void *ctx) {
	int code = goccl_close(race.comm, NULL);
	__atomic_add_fetch(code == 0 ? &race.closed : code == GOCCL_ERR_ARGUMENT ? &race.refused : &race.bad, 1, __ATOMIC_SEQ_CST);
	return NULL;
}
static void *asks(void *ctx) {
	goccl_error e;
	char text[64];
	while (goccl_rank(race.comm) >= 0) {
		goccl_size(race.comm), goccl_failed(race.comm, &e), goccl_describe(race.comm, text, sizeof text, &e);
		goccl_supports(race.comm, GOCCL_ALL_REDUCE, GOCCL_FLOAT32, GOCCL_MULSUM, &e);
		goccl_call(race.comm, &barrier, 1, 0, NULL, NULL, &e);
	}
	return NULL;
}
static void closing(goccl_comm c) {
	for (int i = 0; i < 30; i++) {
		pthread_t t[8];
		CHECK(goccl_split(c, me, 0, &race.comm, &err) == 0);
		race.closed = race.refused = 0;
		for (int j = 0; j < 8; j++)
			pthread_create(&t[j], NULL, j % 2 ? closes : asks, NULL);
		for (int j = 0; j < 8; j++)
			pthread_join(t[j], NULL);
		CHECK(race.closed == 1 && race.refused == 3 && race.bad == 0);
	}
}

int main(void) {
	goccl_comm c;
	goccl_options o = { .size = sizeof o, .timeout = 60000000000 };
	alarm(120);
	CHECK(goccl_join(&o, &c, &err) == 0);
	me = goccl_rank(c);
	callbacks(c);
	lengths(c);
	texts(c);
	options();
	closing(c);
	CHECK(goccl_call(c, &barrier, 1, 0, NULL, NULL, &err) == 0);
	CHECK(goccl_close(c, &err) == 0);
	return wrong;
}
