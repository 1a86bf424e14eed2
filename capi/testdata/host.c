// A host program in two processes that loads the library late: host LIBRARY PORT. It sets its variables itself, has signal handlers of its
// own, makes mistakes, and loses a Comm. It prints what is not as it should be, and returns how much that is.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOCCL_TYPES_ONLY
#include "goccl.h"

static int wrong;
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "process %d, line %d: %s: %d %s\n", me, __LINE__, #x, err.code, err.text), wrong++; \
} while (0)
#define LOAD(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(lib, #name)

int32_t goccl_abi(void);
const char *goccl_version(void);
int32_t goccl_join(const goccl_options *, goccl_comm *, goccl_error *);
int32_t goccl_open(const goccl_options *, goccl_comm *, goccl_error *);
int32_t goccl_open_later(const goccl_options *, goccl_comm *, goccl_error *);
int32_t goccl_split(goccl_comm, int32_t, int32_t, goccl_comm *, goccl_error *);
int32_t goccl_shrink(goccl_comm, goccl_comm *, goccl_error *);
int32_t goccl_close(goccl_comm, goccl_error *);
int32_t goccl_abort(goccl_comm, const char *, goccl_error *);
int32_t goccl_failed(goccl_comm, goccl_error *);
int32_t goccl_rank(goccl_comm);
int32_t goccl_size(goccl_comm);
int32_t goccl_describe(goccl_comm, char *, uint64_t, goccl_error *);
int32_t goccl_supports(goccl_comm, int32_t, int32_t, int32_t, goccl_error *);
int32_t goccl_call(goccl_comm, const goccl_args *, int32_t, int64_t, goccl_done, void *, goccl_error *);
int32_t goccl_subset(goccl_comm, const int32_t *, int32_t, int32_t, int64_t, goccl_comm *, goccl_error *);
int32_t goccl_message(goccl_comm, const goccl_args *, int32_t, int64_t, goccl_arrived, void *, int32_t *, goccl_error *);
int32_t goccl_alloc(goccl_comm, uint64_t, void **, goccl_error *);
void goccl_free(void *);

static volatile sig_atomic_t users;
static sigjmp_buf faulted;
static void on_user(int sig) { users++; }
static void on_fault(int sig) { siglongjmp(faulted, 1); }
static int came = -2;
static void on_arrived(void *ctx, int32_t from, const goccl_error *e) { __atomic_store_n((int *)ctx, e ? 1000 + e->code : from, __ATOMIC_SEQ_CST); }
static void on_done(void *ctx, const goccl_error *e) { __atomic_store_n((int *)ctx, e ? e->code : 100, __ATOMIC_SEQ_CST); }

static void on_counted(void *ctx, const goccl_error *e) { usleep(5000), __atomic_add_fetch((int *)ctx, e != NULL, __ATOMIC_SEQ_CST); }

// A store in which nobody else ever sets a key.
static int asking, asked, held;
static int32_t set_alone(void *ctx, const char *key, const void *value, uint64_t n) {
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		usleep(100);
	return ctx != (void *)7;
}
static int32_t get_alone(void *ctx, const char *key, int64_t timeout, uintptr_t value) {
	__atomic_store_n(&asking, 1, __ATOMIC_SEQ_CST);
	for (int64_t ms = timeout / 1000000 + 1; ms > 0; ms--)
		usleep(1000);
	__atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&asking, 0, __ATOMIC_SEQ_CST);
	return ctx != (void *)7 ? 1 : 2;
}

// Calls whose ctx is a number, as that of many a program is: a callback queues the next.
static struct { __typeof__(goccl_call) *call; goccl_comm comm; goccl_args args; int ended, refused; } sevens;
static void on_seven(void *ctx, const goccl_error *e) {
	int n = __atomic_add_fetch(&sevens.ended, e || ctx != (void *)7 ? 100 : 1, __ATOMIC_SEQ_CST);
	if (n < 200)
		sevens.call(sevens.comm, &sevens.args, 1, 0, on_seven, ctx, NULL);
}
static void on_refused(void *ctx, const goccl_error *e) {
	goccl_args bad = { .kind = 77, .type = GOCCL_INT32 };
	if (ctx == (void *)7 && e && e->code == GOCCL_ERR_ARGUMENT && ++sevens.refused < 30)
		sevens.call(sevens.comm, &bad, 1, 0, on_refused, ctx, NULL); // which is refused inside, and so on: the stack moves
}
static void *queue_seven(void *ctx) {
	on_refused(ctx, &(goccl_error){ .code = GOCCL_ERR_ARGUMENT });
	sevens.call(sevens.comm, &sevens.args, 1, 0, on_seven, ctx, NULL);
	return NULL;
}

// A call that another thread waits in.
static struct { __typeof__(goccl_call) *call; goccl_comm comm; int32_t code; } waiter;
static void *wait_in_call(void *barrier) {
	waiter.code = waiter.call(waiter.comm, barrier, 1, 0, NULL, NULL, NULL);
	return NULL;
}

static int run(int me, const char *library, const char *port) {
	goccl_error err = { 0 };
	alarm(60); // which ends a process that hangs
	struct sigaction user = { .sa_handler = on_user, .sa_flags = SA_ONSTACK }, fault = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER };
	sigaction(SIGUSR1, &user, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	void *lib = dlopen(library, RTLD_NOW);
	if (!lib)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	LOAD(goccl_abi); LOAD(goccl_version); LOAD(goccl_join); LOAD(goccl_open); LOAD(goccl_open_later); LOAD(goccl_split); LOAD(goccl_shrink); LOAD(goccl_close); LOAD(goccl_abort);
	LOAD(goccl_failed); LOAD(goccl_rank); LOAD(goccl_size); LOAD(goccl_describe); LOAD(goccl_supports); LOAD(goccl_call); LOAD(goccl_alloc); LOAD(goccl_free); LOAD(goccl_subset); LOAD(goccl_message);
	CHECK(goccl_abi_() == GOCCL_ABI && strlen(goccl_version_()) > 4);
	goccl_args barrier = { .kind = GOCCL_BARRIER, .place = "host.c:7" };

	// A Comm that is closed before the others have come uses its store no more.
	goccl_comm alone = 0;
	int ended = 0;
	goccl_options first = { .size = sizeof first, .rank = 1, .ranks = 2, .open_timeout = 30000000000, .store = { (void *)7, set_alone, get_alone } };
	CHECK(goccl_open_later_(&first, &alone, &err) == 0);
	CHECK(goccl_call_(alone, &barrier, 1, 0, on_done, &ended, NULL) == 0);
	while (__atomic_load_n(&asked, __ATOMIC_SEQ_CST) < 2 || !__atomic_load_n(&asking, __ATOMIC_SEQ_CST))
		usleep(1000);
	CHECK(goccl_close_(alone, &err) == 0);
	CHECK(!__atomic_load_n(&asking, __ATOMIC_SEQ_CST));
	CHECK(__atomic_load_n(&ended, __ATOMIC_SEQ_CST) > 0 && ended < 100);
	ended = 0;

	// One that could not be opened says so as it is closed, unless it has said so before.
	goccl_options failing = first;
	failing.store.ctx = (void *)8;
	int32_t code = 0;
	for (useconds_t pause = 1000; !code && pause < 10000000; pause *= 2) { // before it has failed it is closed without an error
		CHECK(goccl_open_later_(&failing, &alone, &err) == 0);
		usleep(pause);
		CHECK(goccl_rank_(alone) == -1);
		code = goccl_close_(alone, &err);
	}
	CHECK(code == GOCCL_ERR_BACKEND && strstr(err.text, "the callback set returned 1"));
	CHECK(goccl_open_later_(&failing, &alone, &err) == 0);
	while (!goccl_failed_(alone, &err))
		usleep(1000);
	CHECK(err.code == code && goccl_close_(alone, &err) == 0);

	// The calls that were queued on it have called back when it is closed.
	int told = 0;
	held = 1;
	CHECK(goccl_open_later_(&failing, &alone, &err) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(goccl_call_(alone, &barrier, 1, 0, on_counted, &told, NULL) == 0);
	__atomic_store_n(&held, 0, __ATOMIC_SEQ_CST);
	while (!goccl_failed_(alone, &err)) {}
	CHECK(goccl_close_(alone, &err) == 0 && __atomic_load_n(&told, __ATOMIC_SEQ_CST) == 20);

	// What the program sets after it has loaded the library counts.
	setenv("RANK", me ? "1" : "0", 1);
	setenv("WORLD_SIZE", "2", 1);
	setenv("LOCAL_RANK", me ? "1" : "0", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", port, 1);
	setenv("GOCCL_SPARES", "1", 1); // which C has none of
	goccl_comm world = 0, half = 0, again = 0;
	goccl_options o = { .size = sizeof o, .open_timeout = 30000000000, .timeout = 30000000000 };
	CHECK(goccl_join_(&o, &world, &err) == 0);
	CHECK(goccl_rank_(world) == me && goccl_size_(world) == 2);
	char text[100];
	CHECK(goccl_describe_(world, text, sizeof text, &err) == 0 && strstr(text, "of 2 ("));
	CHECK(goccl_describe_(world, text, 5, &err) == 0 && !strcmp(text, "rank"));

	// Mistakes have codes, and no effect.
	CHECK(goccl_join_(&o, NULL, &err) == GOCCL_ERR_ARGUMENT);
	goccl_options old = { .size = 8 };
	CHECK(goccl_open_(&old, &again, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "goccl_options.size is 8"));
	CHECK(goccl_open_(&o, &again, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "the store has no set"));
	CHECK(goccl_call_(999, NULL, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "999 is no Comm"));
	CHECK(goccl_call_(world, NULL, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "NULL"));
	goccl_args bad = { .kind = 77, .type = GOCCL_INT32 };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "no kind 77"));
	bad = (goccl_args){ .kind = GOCCL_BROADCAST, .type = 99 };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, NULL) == GOCCL_ERR_ARGUMENT);
	bad = (goccl_args){ .kind = GOCCL_BROADCAST, .type = GOCCL_INT8, .dst_n = 1 };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "dst is 1 elements at 0x0"));
	CHECK(goccl_call_(world, &bad, -1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	bad = (goccl_args){ .kind = GOCCL_BROADCAST, .type = GOCCL_INT8, .root = 2 };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "root is 2; the ranks are 0 to 1"));
	bad = (goccl_args){ .kind = GOCCL_SEND_RECV, .type = GOCCL_INT8, .to = -1 };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "peer is -1"));
	bad = (goccl_args){ .kind = GOCCL_ALL_REDUCE };
	CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "no type 0"));
	goccl_args second[2] = { barrier, { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_COMPLEX64, .op = GOCCL_MAX } };
	CHECK(goccl_call_(world, second, 2, 0, NULL, NULL, &err) == GOCCL_ERR_UNSUPPORTED);
	CHECK(goccl_call_(world, second, 2, 0, on_done, &ended, NULL) == 0 && ended == GOCCL_ERR_UNSUPPORTED);
	ended = 0;
	CHECK(goccl_failed_(world, &err) == 0);
	CHECK(goccl_supports_(world, GOCCL_ALL_REDUCE, GOCCL_COMPLEX64, GOCCL_MAX, &err) == GOCCL_ERR_UNSUPPORTED);
	CHECK(goccl_supports_(world, GOCCL_ALL_REDUCE, GOCCL_BOOL, GOCCL_BOR, &err) == 0);

	// Memory of the library, a group of calls, counts by rank, a factor.
	double *mem = NULL;
	CHECK(goccl_alloc_(world, 4000 * sizeof *mem, (void **)&mem, &err) == 0);
	for (int i = 0; mem && i < 4000; i++)
		mem[i] = i + me;
	int64_t counts[2] = { 1, 3 };
	int16_t part[3] = { 10 + me, 20 + me, 30 + me }, all[4] = { 0 };
	goccl_args group[2] = {
		{ .kind = GOCCL_ALL_REDUCE, .type = GOCCL_FLOAT64, .op = GOCCL_MULSUM, .factor = .5, .dst = mem, .dst_n = 4000, .flags = GOCCL_IN_PLACE },
		{ .kind = GOCCL_ALL_GATHER_V, .type = GOCCL_INT16, .dst = all, .dst_n = 4, .src = part, .src_n = counts[me], .dst_counts = counts },
	};
	CHECK(goccl_call_(world, group, 2, 0, NULL, NULL, &err) == 0);
	CHECK(mem && mem[0] == .5 && mem[3999] == 3999.5);
	CHECK(all[0] == 10 && all[1] == 11 && all[2] == 21 && all[3] == 31);
	goccl_free_(mem);
	goccl_free_(NULL);

	// Addresses that are none, of no elements, and numbers that callbacks get.
	goccl_args none = { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_FLOAT32, .dst = (void *)4, .src = (void *)8 };
	CHECK(goccl_call_(world, &none, 1, 0, NULL, NULL, &err) == 0);
	pthread_t other;
	sevens.call = goccl_call_, sevens.comm = world, sevens.args = none;
	pthread_create(&other, NULL, queue_seven, (void *)7);
	while (!__atomic_load_n(&sevens.ended, __ATOMIC_SEQ_CST)) {}
	CHECK(goccl_split_(world, 0, 0, &half, &err) == 0 && goccl_close_(half, &err) == 0); // which waits for those that are queued
	pthread_join(other, NULL);
	CHECK(sevens.ended == 200 && sevens.refused == 30);

	// Messages that cross, and one from any rank, while a call is under way; a Comm of a list of ranks.
	int32_t pair[2] = { 1, 0 }, from = -5;
	static int64_t big[100000], got[100000];
	big[99999] = 7 + me;
	goccl_args out = { .kind = GOCCL_SEND, .type = GOCCL_INT64, .root = !me, .src = big, .src_n = 100000 };
	goccl_args in = { .kind = GOCCL_RECV, .type = GOCCL_INT64, .root = GOCCL_ANY_SOURCE, .dst = got, .dst_n = 100000 };
	CHECK(goccl_call_(world, &barrier, 1, 0, on_done, &ended, NULL) == 0);
	CHECK(goccl_message_(world, &out, 3, 0, on_arrived, &came, NULL, NULL) == 0);
	CHECK(goccl_message_(world, &in, 3, 0, NULL, NULL, &from, &err) == 0 && from == !me && got[99999] == 7 + !me);
	while (__atomic_load_n(&came, __ATOMIC_SEQ_CST) == -2 || !__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		usleep(1000);
	CHECK(came == -1 && ended == 100);
	ended = 0;
	CHECK(goccl_message_(world, &in, 4, 20000000, on_arrived, &came, NULL, NULL) == 0);
	while (__atomic_load_n(&came, __ATOMIC_SEQ_CST) == -1)
		usleep(1000);
	CHECK(came == 1000 + GOCCL_ERR_TIMEOUT);
	CHECK(goccl_message_(world, NULL, 0, 0, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "the message is NULL"));
	CHECK(goccl_message_(world, &barrier, 0, 0, NULL, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "kind 17 is no message"));
	out.root = GOCCL_ANY_SOURCE;
	CHECK(goccl_message_(world, &out, 0, 0, on_arrived, &came, NULL, NULL) == 0 && came == 1000 + GOCCL_ERR_ARGUMENT);
	CHECK(goccl_subset_(world, pair, 2, 0, 0, &half, &err) == 0 && goccl_rank_(half) == !me);
	CHECK(goccl_call_(half, &barrier, 1, 0, NULL, NULL, &err) == 0 && goccl_close_(half, &err) == 0);
	CHECK(goccl_subset_(world, pair, 3, 0, 0, &half, &err) == GOCCL_ERR_ARGUMENT && half == 0);
	CHECK(goccl_subset_(world, NULL, 2, 0, 0, &half, &err) == GOCCL_ERR_ARGUMENT);
	if (me) {
		CHECK(goccl_subset_(world, pair, 2, 9, 50000000, &half, &err) == GOCCL_ERR_TIMEOUT && err.missing_n == 1 && err.missing[0] == 0);
	}
	CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == 0);

	// A thread that comes while another is in a call is refused, whether it makes its call or queues it, and the Comm is good. Rank 1 comes
	// to that call once rank 0 has seen it.
	goccl_args seen = { .kind = me ? GOCCL_RECV : GOCCL_SEND, .type = GOCCL_INT64, .root = !me, .src = big, .src_n = 1, .dst = got, .dst_n = 1 };
	if (me == 0) {
		waiter.call = goccl_call_, waiter.comm = world;
		pthread_create(&other, NULL, wait_in_call, &barrier);
		goccl_args bad = { .kind = 77, .type = GOCCL_INT32 };
		do {
			usleep(1000);
			CHECK(goccl_call_(world, &bad, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
		} while (!strstr(err.text, "another thread is making or queuing calls on this Comm"));
		CHECK(goccl_call_(world, &bad, 1, 0, on_done, &ended, NULL) == 0 && ended == GOCCL_ERR_ARGUMENT);
		ended = 0;
	}
	CHECK(goccl_message_(world, &seen, 5, 0, NULL, NULL, NULL, &err) == 0);
	if (me == 0) {
		pthread_join(other, NULL);
		CHECK(waiter.code == 0);
	} else {
		CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == 0);
	}
	CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == 0);

	// The host's own signals arrive.
	raise(SIGUSR1);
	CHECK(users == 1);
	if (!sigsetjmp(faulted, 1)) {
		*(volatile int *)8 = 1;
		CHECK(!"the fault is the host's");
	}

	// A part, each rank alone in it; a limit that passes; a failure, and the Comm of those that are left.
	CHECK(goccl_split_(world, me, 0, &half, &err) == 0 && goccl_size_(half) == 1);
	CHECK(goccl_close_(half, &err) == 0);
	CHECK(goccl_close_(half, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == 0);
	if (me == 0) {
		CHECK(goccl_call_(world, &barrier, 1, 200000000, on_done, &ended, NULL) == 0);
		while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
			usleep(1000);
		CHECK(ended == GOCCL_ERR_TIMEOUT);
	}
	while (!goccl_failed_(world, &err))
		usleep(1000);
	CHECK(err.code == GOCCL_ERR_TIMEOUT && err.missing_n == 1 && err.missing[0] == 1);
	CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == GOCCL_ERR_TIMEOUT && strstr(err.text, "at host.c:7"));
	barrier.place = NULL;
	CHECK(goccl_call_(world, &barrier, 1, 0, NULL, NULL, &err) == GOCCL_ERR_TIMEOUT && !strstr(err.text, ".go:"));
	CHECK(goccl_shrink_(world, &again, &err) == 0 && goccl_size_(again) == 2);
	CHECK(goccl_abort_(again, me ? NULL : "enough", &err) == 0);
	while (!goccl_failed_(again, &err))
		usleep(1000);
	CHECK(err.code == GOCCL_ERR_ABORTED);
	goccl_close_(again, NULL);
	goccl_close_(world, NULL);

	// It stays loaded, whatever the host says.
	dlclose(lib);
	CHECK(dlopen(library, RTLD_NOW | RTLD_NOLOAD) != NULL);
	CHECK(goccl_abi_() == GOCCL_ABI);
	return wrong;
}

int main(int argc, char **argv) {
	int pid = fork(), status = 0;
	int n = run(pid ? 0 : 1, argv[1], argv[2]);
	if (!pid)
		_exit(n);
	waitpid(pid, &status, 0);
	return n || status ? 1 : 0;
}
