// Memory of the library, and what belongs to a communicator: registrations and operators.
#include "ccl.h"
#include "reduce.h"

struct gccl_window {
	g_comm c;
	void *p;
	size_t n;
	struct gccl_window *next;
};
static struct gccl_window *windows; // that are open
static pthread_mutex_t windows_mu = PTHREAD_MUTEX_INITIALIZER;

// goccl_fake_windows counts windows that are left, of communicators that are, too.
static atomic_int nwindows;
int goccl_fake_windows(void) { return nwindows; }

// ncclCommMemStats says that each rank of a communicator costs a MiB of every device.
g_res ncclCommMemStats(g_comm c, g_memstat what, uint64_t *value) {
	int error = usable(c, __func__);
	if (!error && (what != GCCL_MEM_TOTAL || !value))
		error = (warn("%s : invalid argument", __func__), GCCL_INVALID_ARGUMENT);
	if (!error)
		*value = (uint64_t)c->size << 20;
	return error;
}

g_res ncclMemAlloc(void **p, size_t n) {
	int injected = knob_fail(__func__);
	if (injected)
		return warn("injected failure of %s", __func__), injected;
	if (!p || !n)
		return warn("%s : invalid argument", __func__), GCCL_INVALID_ARGUMENT;
	if (map_memory(p, n))
		return warn("Cuda failure 'out of memory'"), GCCL_UNHANDLED_CUDA;
	return 0;
}

g_res ncclMemFree(void *p) {
	int injected = knob_fail(__func__);
	if (injected)
		return warn("injected failure of %s", __func__), injected;
	pthread_mutex_lock(&windows_mu);
	for (struct gccl_window *w = windows; w; w = w->next)
		if (w->p == p)
			violation("memory was freed while it had a window");
	pthread_mutex_unlock(&windows_mu);
	return p && unmap_memory(p) ? (warn("Cuda failure 'invalid argument'"), GCCL_UNHANDLED_CUDA) : 0;
}

// refuses_window reports whether c's rank makes no windows: FAKE_NCCL_WINDOW=none, on FAKE_NCCL_RANK alone where that is set.
static int refuses_window(g_comm c) {
	const char *how = knob_text("NCCL_WINDOW");
	return how && !strcmp(how, "none") && c->rank == knob("NCCL_RANK", c->rank);
}

// What is wrong with the arguments a rank finds before it meets the others, which wait for it then until they are aborted.
g_res ncclCommWindowRegister(g_comm c, void *p, size_t n, g_win *out, int flags) {
	int error = usable(c, __func__), version = (int)fake_version();
	if (!error && (!p || !n || !out || (flags & ~GCCL_WIN_COLL_SYMMETRIC) || !reach(p, n)))
		error = (warn("%s : invalid argument", __func__), GCCL_INVALID_ARGUMENT);
	if (!error && version >= 22803 && (uintptr_t)p % GCCL_WIN_ALIGNMENT)
		error = (warn("Window address %p must be suitably aligned.", p), GCCL_INVALID_ARGUMENT);
	if (!error && !is_mapped(p, n)) // cuMemRetainAllocationHandle
		error = (warn("Cuda failure 'invalid argument'"), GCCL_UNHANDLED_CUDA);
	if (error)
		return error;
	size_t all[MAX_RANKS];
	int former = on_comm_device(c);
	c->inside++;
	error = gather(c, &n, all, sizeof n);
	c->inside--;
	use_device(former);
	for (int i = 0; i < c->size && !error; i++)
		if (all[i] != n) {
			violation("a symmetric window of unequal sizes");
			error = GCCL_INVALID_ARGUMENT;
		}
	if (error)
		return error;
	if (refuses_window(c)) {
		if (version < 22800) // 2.28 leaves it as it is
			*out = NULL;
		return 0;
	}
	struct gccl_window *w = malloc(sizeof *w);
	pthread_mutex_lock(&windows_mu);
	for (struct gccl_window *o = windows; o; o = o->next)
		if (o->c == c && (char *)o->p < (char *)p + n && (char *)p < (char *)o->p + o->n)
			violation("memory has two windows of a communicator"); // and the sorted table of them one entry too many (dev_runtime.cc)
	*w = (struct gccl_window){ c, p, n, windows };
	windows = *out = w;
	c->windows++;
	nwindows++;
	pthread_mutex_unlock(&windows_mu);
	return 0;
}

// close_window takes w out of the list, if it is there.
static int close_window(g_win w) {
	g_win *at = &windows;
	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at)
		return 0;
	*at = w->next;
	w->c->windows--;
	nwindows--;
	return 1;
}

// ncclCommWindowDeregister is local, and takes NULL.
g_res ncclCommWindowDeregister(g_comm c, g_win w) {
	int error = usable(c, __func__);
	if (error || !w)
		return error;
	pthread_mutex_lock(&windows_mu);
	if (!close_window(w) || w->c != c)
		error = (warn("%s : not a window of this communicator", __func__), GCCL_INVALID_ARGUMENT);
	pthread_mutex_unlock(&windows_mu);
	if (error)
		return error;
	if (!reach(w->p, w->n))
		error = (warn("Cuda failure 'invalid argument'"), GCCL_UNHANDLED_CUDA); // it was counted when it was freed
	free(w);
	return error;
}

typedef struct { g_comm c; void *p; } registration;

// goccl_fake_registered counts registrations that are left, of communicators that are, too.
static atomic_int registered;
int goccl_fake_registered(void) { return registered; }

// goccl_fake_registered_bytes is how many bytes those have been that were made, in all.
static atomic_int registered_bytes;
int goccl_fake_registered_bytes(void) { return registered_bytes; }

g_res ncclCommRegister(g_comm c, void *p, size_t n, void **handle) {
	int error = usable(c, __func__);
	if (!error && !thread_has_context()) // cuMemGetAddressRange, NCCL since 2.30.3
		error = (warn("%s : no context is current", __func__), GCCL_UNHANDLED_CUDA);
	if (!error && !reach(p, n))
		error = (warn("%s : not memory that was allocated", __func__), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	registration *r = malloc(sizeof *r);
	*r = (registration){ c, p };
	registered_bytes += (int)n;
	c->registered++;
	registered++;
	*handle = r;
	return 0;
}

g_res ncclCommDeregister(g_comm c, void *handle) {
	int error = usable(c, __func__);
	registration *r = handle;
	if (!error && r->c != c)
		error = (warn("%s : a handle of another communicator", __func__), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	if (!reach(r->p, 1))
		violation("memory was freed while it was registered");
	c->registered--;
	registered--;
	free(r);
	return 0;
}

void forget_registered(g_comm c) {
	registered -= c->registered;
	pthread_mutex_lock(&windows_mu);
	for (g_win w = windows, next; w; w = next) {
		next = w->next;
		if (w->c == c && close_window(w))
			free(w);
	}
	pthread_mutex_unlock(&windows_mu);
}

g_res ncclRedOpCreatePreMulSum(g_op *op, void *scalar, g_dtype type, g_resid where, g_comm c) {
	int error = usable(c, __func__);
	if (!error && (where != GCCL_SCALAR_HOST || type < GCCL_FLOAT16 || type > GCCL_BFLOAT16 || c->nfactors == 256))
		error = (warn("%s : invalid type %d or residence %d", __func__, type, where), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	c->factors[c->nfactors] = element(scalar, type);
	*op = GCCL_AVG + 1 + c->nfactors++;
	return 0;
}
