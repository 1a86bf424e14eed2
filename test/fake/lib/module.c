// Modules and kernels: the driver's functions beside the runtime. An image is PTX, of which only the names and the versions are read;
// what a kernel does is C (kernels.c), run by the stream's thread, one thread of the grid after the other.
#include "fake.h"
#include "kernel.h"

#include "../../../include/gcu.h"

enum { INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_PTX = 218, NEWER_PTX = 222, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

__thread struct index threadIdx, blockIdx, blockDim, gridDim;

static kernel *kernels;
void add_kernel(kernel *k) {
	k->next = kernels;
	kernels = k;
}

typedef struct { char *image; int device; } module;

// number is what follows a directive of PTX, as 70 of ".target sm_70" and 6.0 of ".version 6.0"; -1: it is not there.
static double number(const char *image, const char *directive) {
	const char *at = strstr(image, directive);
	return at ? strtod(at + strlen(directive), NULL) : -1;
}

static int judge(const char *image, const char **why) {
	double version = number(image, ".version "), target = number(image, ".target sm_");
	if (version < 0 || target < 0)
		return *why = "ptxas fatal   : Missing .version directive at start of file", INVALID_PTX;
	if (strstr(image, "FAKE_SYNTAX_ERROR"))
		return *why = "ptxas application ptx input, line 7; error   : Unknown symbol 'FAKE_SYNTAX_ERROR'", INVALID_PTX;
	if (version * 10 > knob("PTX", 90) + .5)
		return *why = "ptxas fatal   : Unsupported .version", NEWER_PTX;
	if (target > compute_capability())
		return *why = "", NO_BINARY;
	return 0;
}

u_res cuModuleLoadDataEx(u_module *out, const void *image, unsigned n, u_jit *options, void **values) {
	int failure = device_error(__func__);
	if (failure)
		return failure;
	if (!thread_has_context())
		return GCU_INVALID_CONTEXT;
	const char *why = "";
	int error = *(const char *)image == '/' || *(const char *)image == '.' || *(const char *)image == '\n' ? judge(image, &why) : INVALID_IMAGE;
	char *log = NULL;
	size_t room = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == GCU_JIT_ERROR_LOG)
			log = values[i];
		if (options[i] == GCU_JIT_ERROR_LOG_BYTES)
			room = (size_t)values[i];
	}
	if (log && room)
		snprintf(log, room, "%s", why);
	if (error)
		return error;
	module *m = malloc(sizeof *m);
	*m = (module){ strdup(image), current_device() };
	*out = (u_module)m;
	born(MODULE);
	return 0;
}

u_res cuModuleUnload(u_module handle) {
	int failure = device_error(__func__);
	if (failure)
		return failure;
	module *m = (module *)handle;
	pthread_mutex_lock(&mu);
	drain(m->device);
	pthread_mutex_unlock(&mu);
	free(m->image);
	free(m);
	died(MODULE);
	return 0;
}

u_res cuModuleGetFunction(u_function *out, u_module handle, const char *name) {
	int failure = device_error(__func__);
	if (failure)
		return failure;
	char entry[128];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	if (!strstr(((module *)handle)->image, entry))
		return NOT_FOUND;
	for (kernel *k = kernels; k; k = k->next)
		if (!strcmp(k->name, name))
			return *out = (u_function)k, 0;
	return NOT_FOUND; // there is no C of it
}

u_res cuFuncGetParamInfo(u_function handle, size_t i, size_t *offset, size_t *size) {
	kernel *k = (kernel *)handle;
	if ((int)i >= k->params)
		return GDEV_INVALID_VALUE;
	*offset = 0;
	*size = abs(k->sizes[i]);
	return 0;
}

typedef struct {
	work w;
	kernel *k;
	struct index grid, block;
	unsigned long long values[MAX_PARAMS];
} started;

static void run_kernel(work *w, unsigned long tag) {
	started *s = (started *)w;
	unsigned long long values[MAX_PARAMS];
	void *args[MAX_PARAMS];
	(void)tag;
	for (int i = 0; i < s->k->params; i++) {
		values[i] = s->values[i];
		args[i] = &values[i];
		if (s->k->sizes[i] < 0) {
			void *p = (void *)(uintptr_t)values[i], *at = p ? reach(p, 1) : NULL;
			if (p && !at)
				return break_streams(ILLEGAL_ADDRESS);
			values[i] = (uintptr_t)at;
		}
	}
	gridDim = s->grid, blockDim = s->block;
	for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
				for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
					for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
						for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
							s->k->run(args);
}

u_res cuLaunchKernel(u_function handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, u_stream stream,
	void **params, void **extra) {
	int failure = device_error(__func__);
	if (failure)
		return failure;
	if (!thread_has_context())
		return GCU_INVALID_CONTEXT;
	kernel *k = (kernel *)handle;
	if (!gx || !gy || !gz || !bx || !by || !bz || (u64)bx * by * bz > 1024 || gy > 65535 || gz > 65535 || shared > 48 << 10 || extra)
		return GDEV_INVALID_VALUE;
	started *s = calloc(1, sizeof *s);
	s->w = (work){ .run = run_kernel, .drop = work_free, .refs = 1 };
	s->k = k, s->grid = (struct index){ gx, gy, gz }, s->block = (struct index){ bx, by, bz };
	for (int i = 0; i < k->params; i++)
		memcpy(&s->values[i], params[i], abs(k->sizes[i]));
	return enqueue(stream, &s->w, 0);
}
