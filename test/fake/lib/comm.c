// The life of communicators: how they start, what their errors are, how they end.
#define _GNU_SOURCE
#include "ccl.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/random.h>

static char last_error[256]; // one for all, as in NCCL

int warn(const char *format, ...) {
	char text[sizeof last_error] = ""; // vsnprintf empties what it writes to first, and another thread may be reading
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	memcpy(last_error, text, sizeof text);
	if (getenv("NCCL_DEBUG"))
		fprintf(stderr, "fake NCCL WARN %s\n", text);
	return 0;
}

// dead is a call on a communicator that has been freed: NCCL reads what was freed then.
static int dead(const char *function) {
	violation(function);
	return warn("%s : comm is destroyed, or not one", function), GCCL_INVALID_ARGUMENT;
}

long fake_version(void) { return knob("NCCL_VERSION", 23102); }

// lost_peer: an error of sockets or verbs is in proxyState->asyncResult as well, which
// ncclCommRevoke leaves there (proxy.cc). The devices of a host reach each other without.
int lost_peer(g_comm c) {
	if (knob("NCCL_NET", 0) && c->rank == knob("NCCL_RANK", c->rank))
		c->proxy = GCCL_REMOTE;
	return GCCL_REMOTE;
}

int usable(g_comm c, const char *function) {
	int injected = knob_fail(function);
	if (injected)
		return warn("injected failure of %s", function), injected;
	if (!c)
		return warn("%s : comm argument is NULL", function), GCCL_INVALID_ARGUMENT;
	if (c->magic != ALIVE)
		return dead(function);
	if (c->revoked)
		return warn("%s : the communicator has been revoked", function), GCCL_INVALID_USAGE;
	if (c->async == GCCL_IN_PROGRESS)
		return warn("%s : the previous operation has not ended", function), GCCL_INVALID_ARGUMENT;
	return c->async;
}

g_comm make_comm(int size, const g_uid *id, int rank, int device, int asynchronous) {
	g_comm c = calloc(1, sizeof *c);
	c->magic = ALIVE;
	c->rank = rank;
	c->size = size;
	c->device = device;
	c->asynchronous = asynchronous;
	c->id = *id;
	c->async = GCCL_IN_PROGRESS;
	c->pending = 1;
	c->idle = knob("NCCL_IDLE", 0);
	c->amd = thread_asks_hip();
	c->every = knob("NCCL_ASYNC_ALL", 1);
	c->patience = knob("NCCL_INIT_TIMEOUT", 60);
	const char *blocking = getenv("NCCL_COMM_BLOCKING"); // has the last word, as envConfigOverride in init.cc
	if (blocking && *blocking)
		c->asynchronous = *blocking == '0';
	born(COMM);
	return c;
}

static void *start(void *v) {
	g_comm c = v;
	while (knob("NCCL_IN_PROGRESS", 0) && !c->abort)
		usleep(1000);
	const char *bad = knob_text("NCCL_BAD_START");
	c->async = bad && atoi(bad) == c->rank ? (warn("Cuda failure 'out of memory'"), GCCL_UNHANDLED_CUDA) : meet(c);
	c->made = !c->async;
	c->pending--;
	return NULL;
}

// goccl_fake_threads is how many threads calls have made, starts not counted.
static atomic_int threads;
void thread_made(void) { threads++; }
int goccl_fake_threads(void) { return threads; }

// What is pending of a communicator that does not block belongs to the thread that called, in NCCL up to 2.26: its next call
// for another communicator walks into it (ncclGroupCommHead, include/group.h), and an abort elsewhere frees under it.
static __thread g_comm mine;
static int jobs_are_threads(void) {
	const char *of = knob_text("NCCL_JOB");
	return of && !strcmp(of, "thread");
}
void made_call(g_comm c) {
	if (!jobs_are_threads())
		return;
	mine = c;
	c->made_on = 1;
	c->maker = pthread_self();
}
void other_call(g_comm c) {
	if (jobs_are_threads() && mine && mine != c && mine->magic == ALIVE && mine->async == GCCL_IN_PROGRESS)
		violation("a thread has called for another communicator with a call of its own under way");
	if (mine == c)
		mine = NULL;
}

int on_comm_device(g_comm c) {
	int former = current_device();
	use_device(c->device);
	return former;
}

int launch_comm(g_comm c, g_comm *out) {
	pthread_t thread;
	*out = c;
	if (group_depth())
		return group_init(c, start);
	if (c->asynchronous && !knob("NCCL_INIT_SYNC", 0)) { // RCCL 2.27.7 tests a queue that it has just emptied, and waits itself
		pthread_create(&thread, NULL, start, c);
		pthread_detach(thread);
		return GCCL_IN_PROGRESS;
	}
	start(c);
	return c->async; // also of a start that has failed *out stays, to be aborted (ncclCommInitRankFunc, src/init.cc)
}

g_res ncclGetVersion(int *v) {
	if (!v)
		return GCCL_INVALID_ARGUMENT;
	*v = (int)fake_version();
	return 0;
}

// take_signals is what a library does that brings its own handlers: without the signal stack, as some do. Not SIGURG, which Go sends
// its own threads all the time: until the engine has put Go's handler back it would run on a goroutine's stack, and write below it.
static void taken(int s) {
	signal(s, SIG_DFL);
	raise(s);
}
static void take_signals(void) {
	const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGUSR1 };
	for (size_t i = 0; knob("NCCL_SIGNALS", 0) && i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], taken);
}

g_res ncclGetUniqueId(g_uid *id) {
	unsigned char r[16];
	int injected = knob_fail(__func__);
	if (injected)
		return warn("injected failure of %s", __func__), injected;
	if (getrandom(r, sizeof r, 0) != sizeof r)
		return GCCL_SYSTEM;
	memset(id, 0, sizeof *id);
	for (int i = 0; i < 16; i++)
		sprintf(id->internal + 2 * i, "%02x", r[i]);
	return 0;
}

int blocking(const g_cfg *config) { return !config || config->blocking != 0; }

g_res ncclCommInitRankConfig(g_comm *out, int n, g_uid id, int rank, g_cfg *config) {
	int injected = knob_fail("ncclCommInitRank");
	if (injected)
		return warn("injected failure of ncclCommInitRank"), injected;
	if (n < 1 || n > MAX_RANKS || rank < 0 || rank >= n || !out)
		return warn("invalid rank requested : %d/%d", rank, n), GCCL_INVALID_ARGUMENT;
	if (config && (config->magic != GCCL_CONFIG_MAGIC || config->size < 24))
		return warn("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER"), GCCL_INVALID_ARGUMENT;
	take_signals();
	if (devices() < 1)
		return warn("Cuda failure 'no CUDA-capable device is detected'"), GCCL_UNHANDLED_CUDA;
	g_comm c = make_comm(n, &id, rank, current_device(), !blocking(config));
	int error = config ? configured(c, config) : 0;
	if (error) {
		c->pending = 0;
		ncclCommAbort(c);
		return error;
	}
	return launch_comm(c, out);
}

g_res ncclCommInitRank(g_comm *out, int n, g_uid id, int rank) { return ncclCommInitRankConfig(out, n, id, rank, NULL); }

// ncclCommInitRankScalable: ranks that have other ids, or the same in another order, do not meet.
g_res ncclCommInitRankScalable(g_comm *out, int n, int rank, int nids, g_uid *ids, g_cfg *config) {
	int injected = knob_fail(__func__);
	if (injected)
		return warn("injected failure of %s", __func__), injected;
	if (nids < 1 || nids > n || !ids)
		return warn("%s : %d ids of %d ranks", __func__, nids, n), GCCL_INVALID_ARGUMENT;
	unsigned long hash = 14695981039346656037UL;
	for (size_t i = 0; i < nids * sizeof *ids; i++)
		hash = (hash ^ ((unsigned char *)ids)[i]) * 1099511628211UL;
	g_uid id = ids[0];
	size_t at = strlen(id.internal);
	snprintf(id.internal + at, sizeof id.internal - at, ".%lx", hash);
	return ncclCommInitRankConfig(out, n, id, rank, config);
}

// goccl_fake_asking and goccl_fake_aborting are how many threads are in ncclCommGetAsyncError, and in ncclCommAbort
// with all operations ended.
static atomic_int asking, aborting;
int goccl_fake_asking(void) { return asking; }
int goccl_fake_aborting(void) { return aborting; }

void wait_idle(g_comm c) {
	while (c->pending && !c->abort && (!c->async || c->async == GCCL_IN_PROGRESS))
		usleep(100);
}

// final_barrier: from 2.31 on what ends a communicator waits for all ranks of the host, unless it
// is aborted (commDestroySync, src/init.cc). A rank that never comes is waited for until then.
static void final_barrier(g_comm c) {
	transfer t[2 * MAX_RANKS];
	char here = 0, all[MAX_RANKS];
	int n = 0;
	if (atomic_exchange(&c->finalized, 1) || !c->made || c->abort || c->async || fake_version() < 23100)
		return;
	for (int p = 0; p < c->size; p++) {
		if (!(c->mates >> p & 1) || p == c->rank)
			continue;
		t[n++] = (transfer){ p, CONTROL, &here, NULL, 1, 0 };
		t[n++] = (transfer){ p, CONTROL, NULL, &all[p], 1, 0 };
	}
	int error = n ? exchange(c, t, n) : 0;
	while (error && !c->abort)
		usleep(1000);
}

static int finish(g_comm c, const char *function, int abort) {
	if (!c)
		return 0;
	if (c->magic != ALIVE)
		return dead(function);
	int former = on_comm_device(c);
	if (c->made_on && c->async == GCCL_IN_PROGRESS && !pthread_equal(c->maker, pthread_self()))
		violation("a communicator was freed with a call of another thread under way");
	if (abort || (c->async && c->async != GCCL_IN_PROGRESS))
		c->abort = 1;
	if (c->asynchronous || !c->abort)
		wait_idle(c);
	final_barrier(c);
	while (c->abort && c->pending) // kernels look at the flag; so do threads of calls that do not block
		usleep(100);
	aborting += abort;
	if (abort && knob("NCCL_ABORT_US", 0))
		usleep(knob("NCCL_ABORT_US", 0));
	while ((abort && knob("NCCL_ABORT_HANG", 0)) || (c->captured && knob("NCCL_GRAPH_REFS", 1)))
		usleep(1000);
	aborting -= abort;
	c->magic = 0; // the rest stays, so that a later use is seen and not undefined
	if (c->inside)
		violation("a communicator was freed with a call inside it");
	else
		part(c);
	forget_registered(c);
	died(COMM);
	use_device(former);
	return 0;
}

g_res ncclCommFinalize(g_comm c) {
	int error = usable(c, __func__);
	if (error)
		return error;
	wait_idle(c);
	final_barrier(c);
	return 0;
}

g_res ncclCommDestroy(g_comm c) { return finish(c, __func__, 0); }
g_res ncclCommAbort(g_comm c) { return finish(c, __func__, 1); }

// goccl_fake_asking is how many threads are in ncclCommGetAsyncError.
g_res ncclCommGetAsyncError(g_comm c, g_res *state) {
	if (!c)
		return warn("%s : comm argument is NULL", __func__), GCCL_INVALID_ARGUMENT;
	if (c->magic != ALIVE)
		return dead(__func__);
	c->inside++;
	asking++;
	if (c->asking++ && c->job && knob("NCCL_GAE_JOINS", 1)) // NCCL since 2.26: both would join the call's thread, and free it
		violation("two threads ask for one call");
	if (knob("NCCL_GAE_US", 0))
		usleep(knob("NCCL_GAE_US", 0));
	int injected = knob_fail(__func__);
	*state = c->async ? c->async : c->proxy;
	if (c->async != GCCL_IN_PROGRESS)
		c->job = 0;
	c->asking--;
	asking--;
	c->inside--;
	return injected;
}

// ---- texts

const char *ncclGetLastError(g_comm c) {
	(void)c;
	return last_error;
}

const char *ncclGetErrorString(g_res r) {
	static const char *text[] = {
		"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage",
		"remote process exited or there was a network error", "NCCL operation in progress", "timeout",
	};
	return r >= 0 && r <= GCCL_TIMEOUT ? text[r] : "unknown result code";
}
