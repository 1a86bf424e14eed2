// Device memory is a memfd that is mapped twice: without any permission at the address that the caller
// sees, so that a host access faults, as it does on a GPU; and readable at one that only we know.
#define _GNU_SOURCE
#include "fake.h"

#include <sys/mman.h>

enum { UNREGISTERED, PINNED, ON_DEVICE, MANAGED }; // as cudaMemoryType
enum { PAGE = 4096 };

typedef struct block block;
struct block {
	char *p;
	size_t n;
	int device, type, owned; // owned: the memory is ours to free
	int mapped;              // of map_memory
	block *next;
};
static block *blocks; // in the order of addresses where they are on a device
static char *seen, *shadow;
static size_t room;

#define ENTER() \
	int failure_ = device_error(__func__); \
	if (failure_) return keep_error(failure_)

static int on_device(const void *p) { return seen && (char *)p >= seen && (char *)p < seen + room; }

static block *owner(const void *p, size_t n) {
	for (block *b = blocks; b; b = b->next)
		if ((char *)p >= b->p && (char *)p + n <= b->p + b->n)
			return b;
	return NULL;
}

void *reach(const void *p, size_t n) {
	if (!on_device(p))
		return (void *)p;
	pthread_mutex_lock(&mu);
	block *b = owner(p, n);
	pthread_mutex_unlock(&mu);
	return b ? shadow + ((char *)p - seen) : NULL;
}

static size_t pages(size_t n) { return (n + PAGE - 1) / PAGE * PAGE + PAGE; } // with one that nobody owns behind

static int map(void) {
	if (seen)
		return 0;
	room = knob("MEM", 1L << 30);
	int fd = memfd_create("goccl-fake-device", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, room))
		return GDEV_NO_MEMORY;
	shadow = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	seen = mmap(NULL, room, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	return 0;
}

static void insert(block **at, block b) {
	block *n = malloc(sizeof *n);
	*n = b;
	n->next = *at;
	*at = n;
	born(BLOCK);
}

static int allocate(void **out, size_t n, int mapped) {
	pthread_mutex_lock(&mu);
	int error = map();
	char *p = seen;
	block **at = &blocks; // first fit
	for (; !error && *at; at = &(*at)->next)
		if ((*at)->type == ON_DEVICE) {
			if (p + pages(n) <= (*at)->p)
				break;
			p = (*at)->p + pages((*at)->n);
		}
	if (!error && p + pages(n) > seen + room)
		error = GDEV_NO_MEMORY;
	if (!error) {
		insert(at, (block){ p, n, current_device(), ON_DEVICE, 0, mapped, NULL });
		memset(shadow + (p - seen), 0xA5, n); // never zero by luck
		*out = p;
	}
	pthread_mutex_unlock(&mu);
	return error;
}

// forget takes a block out of the list: pinned host memory, or the other kinds. mu is held.
static int forget(void *p, int pinned) {
	block **at = &blocks;
	while (*at && ((*at)->p != p || ((*at)->type == PINNED) != pinned))
		at = &(*at)->next;
	block *b = *at;
	if (!b)
		return GDEV_INVALID_VALUE;
	*at = b->next;
	if (b->owned)
		free(b->p);
	free(b);
	died(BLOCK);
	return 0;
}

g_drc cudaMalloc(void **out, size_t n) {
	ENTER();
	*out = NULL;
	return keep_error(n ? allocate(out, n, 0) : 0);
}

g_drc cudaFree(void *p) {
	ENTER();
	if (!p)
		return 0;
	pthread_mutex_lock(&mu);
	drain(current_device()); // as the real one: where a kernel hangs, so does cudaFree
	block *b = owner(p, 0);
	int error = b && b->mapped ? GDEV_INVALID_VALUE : forget(p, 0);
	pthread_mutex_unlock(&mu);
	return keep_error(error);
}

int map_memory(void **out, size_t n) { return allocate(out, n, 1); }

int is_mapped(const void *p, size_t n) {
	pthread_mutex_lock(&mu);
	block *b = owner(p, n);
	int mapped = b && b->mapped;
	pthread_mutex_unlock(&mu);
	return mapped;
}

int unmap_memory(void *p) {
	pthread_mutex_lock(&mu);
	drain(current_device());
	block *b = owner(p, 0);
	int error = b && b->mapped && b->p == p ? forget(p, 0) : GDEV_INVALID_VALUE;
	pthread_mutex_unlock(&mu);
	return error;
}

// In the order of a stream.
typedef struct { work w; void *p; } release;
static void run_release(work *w, unsigned long tag) {
	(void)tag;
	pthread_mutex_lock(&mu);
	forget(((release *)w)->p, 0);
	pthread_mutex_unlock(&mu);
}

g_drc cudaMallocAsync(void **out, size_t n, g_stream s) {
	ENTER();
	return keep_error(stream_device(s) < 0 ? GDEV_INVALID_HANDLE : allocate(out, n, 0));
}

g_drc cudaFreeAsync(void *p, g_stream s) {
	ENTER();
	pthread_mutex_lock(&mu);
	int known = owner(p, 0) != NULL;
	pthread_mutex_unlock(&mu);
	if (!known)
		return keep_error(GDEV_INVALID_VALUE);
	if (stream_captures(s)) // the graph keeps it, and each replay has it again
		return 0;
	release *r = calloc(1, sizeof *r);
	*r = (release){ .w = { .run = run_release, .drop = work_free, .refs = 1 }, .p = p };
	return keep_error(enqueue(s, &r->w, 0));
}

static int host(void **out, size_t n, int type) {
	if (posix_memalign(out, PAGE, n ? n : 1))
		return GDEV_NO_MEMORY;
	pthread_mutex_lock(&mu);
	block **at = &blocks;
	while (*at)
		at = &(*at)->next;
	insert(at, (block){ *out, n, current_device(), type, 1, 0, NULL });
	pthread_mutex_unlock(&mu);
	return 0;
}

g_drc cudaMallocManaged(void **out, size_t n, unsigned flags) {
	ENTER();
	(void)flags;
	return keep_error(host(out, n, MANAGED));
}

g_drc cudaHostAlloc(void **out, size_t n, unsigned flags) {
	ENTER();
	(void)flags;
	return keep_error(host(out, n, PINNED));
}

g_drc cudaFreeHost(void *p) {
	ENTER();
	pthread_mutex_lock(&mu);
	block *b = p ? owner(p, 0) : NULL;
	if (b) // as the real one, which does not free what a copy under way still writes to
		drain(b->device);
	int error = p ? forget(p, 1) : 0;
	pthread_mutex_unlock(&mu);
	return keep_error(error);
}

g_drc cudaHostFree(void *p) { return cudaFreeHost(p); }

g_drc cudaHostRegister(void *p, size_t n, unsigned flags) {
	ENTER();
	(void)flags;
	if (!p || !n)
		return keep_error(GDEV_INVALID_VALUE);
	pthread_mutex_lock(&mu);
	block **at = &blocks;
	while (*at)
		at = &(*at)->next;
	insert(at, (block){ p, n, current_device(), PINNED, 0, 0, NULL });
	pthread_mutex_unlock(&mu);
	return 0;
}

g_drc cudaHostUnregister(void *p) {
	ENTER();
	pthread_mutex_lock(&mu);
	int error = forget(p, 1);
	pthread_mutex_unlock(&mu);
	return keep_error(error);
}

g_drc cudaPointerGetAttributes(g_pointer *out, const void *p) {
	ENTER();
	pthread_mutex_lock(&mu);
	block *b = owner(p, 0);
	struct { int type, device; const void *on_device, *on_host; } a = { UNREGISTERED, -2, NULL, p };
	if (b)
		a.type = b->type, a.device = b->device, a.on_device = p, a.on_host = b->type == ON_DEVICE ? NULL : p;
	pthread_mutex_unlock(&mu);
	memcpy(out, &a, sizeof a);
	return 0;
}

g_drc cudaMemGetInfo(size_t *unused, size_t *total) {
	ENTER();
	*unused = *total = knob("MEM", 1L << 30);
	pthread_mutex_lock(&mu);
	for (block *b = blocks; b; b = b->next)
		if (b->type == ON_DEVICE && b->device == current_device())
			*unused -= b->n;
	pthread_mutex_unlock(&mu);
	return 0;
}

// Copies
typedef struct { work w; char *to; const char *from; int value; size_t n; } copy;

static void run_copy(work *w, unsigned long tag) {
	copy *c = (copy *)w;
	(void)tag;
	if (c->from)
		memmove(c->to, c->from, c->n);
	else
		memset(c->to, c->value, c->n);
}

static int is_device(const void *p) {
	pthread_mutex_lock(&mu);
	block *b = owner(p, 0);
	pthread_mutex_unlock(&mu);
	return on_device(p) || (b && b->type == MANAGED);
}

static int move(void *to, const void *from, int value, size_t n, int kind, void *stream, int wait) {
	int from_device = kind == GDEV_DEVICE_TO_HOST || kind == GDEV_DEVICE_TO_DEVICE;
	int to_device = kind == GDEV_HOST_TO_DEVICE || kind == GDEV_DEVICE_TO_DEVICE;
	if (from && ((from_device && !is_device(from)) || (to_device && !is_device(to))))
		return GDEV_INVALID_VALUE;
	if (!n)
		return 0;
	copy *c = calloc(1, sizeof *c);
	*c = (copy){ { .run = run_copy, .drop = work_free, .refs = 1 }, reach(to, n), from ? reach(from, n) : NULL, value, n };
	if (!c->to || (from && !c->from)) {
		free(c);
		return GDEV_INVALID_VALUE;
	}
	pthread_mutex_lock(&mu); // with pageable host memory the real call waits; with pinned memory it does not
	int pageable = (!on_device(to) && !owner(to, n)) || (from && !on_device(from) && !owner(from, n));
	pthread_mutex_unlock(&mu);
	return enqueue(stream, &c->w, wait || pageable);
}

g_drc cudaMemcpyAsync(void *to, const void *from, size_t n, g_memkind kind, g_stream s) {
	ENTER();
	return keep_error(move(to, from, 0, n, kind, s, 0));
}

g_drc cudaMemcpy(void *to, const void *from, size_t n, g_memkind kind) {
	ENTER();
	return keep_error(move(to, from, 0, n, kind, NULL, kind != GDEV_DEVICE_TO_DEVICE));
}

g_drc cudaMemsetAsync(void *to, int value, size_t n, g_stream s) {
	ENTER();
	pthread_mutex_lock(&mu);
	int known = owner(to, n) != NULL;
	pthread_mutex_unlock(&mu);
	return keep_error(known ? move(to, NULL, value, n, GDEV_ANY_TO_ANY, s, 0) : GDEV_INVALID_VALUE);
}

g_drc cudaMemset(void *to, int value, size_t n) {
	ENTER();
	return cudaMemsetAsync(to, value, n, NULL); // nor does the real one wait
}
