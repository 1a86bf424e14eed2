// loop SIZE ITERS RANKS [DEVICE]: all-reduces of SIZE bytes of float, in place, in C, over the same libraries that goccl
// opens: what bench is compared with. Each rank is a process on a device of its own, or all are on DEVICE; then NCCL has to
// allow that (NCCL_MULTI_RANK_GPU_ENABLE=1), or is told that each rank is a host. Rank 0 prints the microseconds of a call.
// loop version: what ncclGetVersion says.
//
// Device memory and streams come from the CUDA runtime where there is one, else from the driver, as in goccl.
#include "../../include/gccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRY(call) \
	do { \
		int r_ = (call); \
		if (r_) { \
			fprintf(stderr, "loop: " #call ": error %d\n", r_); \
			exit(1); \
		} \
	} while (0)

static void *library(const char *variable, const char *const *names, int need) {
	void *l = NULL;
	const char *file = getenv(variable);
	if (file && *file)
		l = dlopen(file, RTLD_NOW);
	for (; !l && *names; names++)
		l = dlopen(*names, RTLD_NOW);
	if (!l && need) {
		fprintf(stderr, "loop: %s\n", dlerror());
		exit(1);
	}
	return l;
}

static void *find(void *l, const char *name) {
	void *f = dlsym(l, name);
	if (!f) {
		fprintf(stderr, "loop: no function %s\n", name);
		exit(1);
	}
	return f;
}

// memory is a block of device memory and a stream on device n.
static int (*wait_for)(void *stream);
static void device(int n, size_t bytes, void **memory, void **stream) {
	static const char *const runtime[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so", NULL };
	static const char *const driver[] = { "libcuda.so.1", NULL };
	void *l = library("GOCCL_CUDART_LIB", runtime, 0);
	if (l && dlsym(l, "cudaMalloc")) {
		TRY(((int (*)(int))find(l, "cudaSetDevice"))(n));
		TRY(((int (*)(void **, size_t))find(l, "cudaMalloc"))(memory, bytes));
		TRY(((int (*)(void *, int, size_t))find(l, "cudaMemset"))(*memory, 0, bytes));
		TRY(((int (*)(void **, unsigned))find(l, "cudaStreamCreateWithFlags"))(stream, 1));
		wait_for = (int (*)(void *))find(l, "cudaStreamSynchronize");
		return;
	}
	l = library("GOCCL_CUDA_DRIVER", driver, 1);
	void *context;
	int handle;
	TRY(((int (*)(unsigned))find(l, "cuInit"))(0));
	TRY(((int (*)(int *, int))find(l, "cuDeviceGet"))(&handle, n));
	TRY(((int (*)(void **, int))find(l, "cuDevicePrimaryCtxRetain"))(&context, handle));
	TRY(((int (*)(void *))find(l, "cuCtxSetCurrent"))(context));
	TRY(((int (*)(void **, size_t))find(l, "cuMemAlloc_v2"))(memory, bytes));
	TRY(((int (*)(void *, unsigned char, size_t))find(l, "cuMemsetD8_v2"))(*memory, 0, bytes));
	TRY(((int (*)(void **, unsigned))find(l, "cuStreamCreate"))(stream, 1));
	wait_for = (int (*)(void *))find(l, "cuStreamSynchronize");
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

int main(int argc, char **argv) {
	static const char *const names[] = { "libnccl.so.2", "libnccl.so", NULL };
	if (argc == 2 && !strcmp(argv[1], "version")) {
		int version;
		TRY(((g_res (*)(int *))find(library("GOCCL_NCCL_LIB", names, 1), "ncclGetVersion"))(&version));
		printf("%d\n", version);
		return 0;
	}
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: loop SIZE ITERS RANKS [DEVICE] | loop version\n");
		return 2;
	}
	size_t bytes = strtoull(argv[1], NULL, 0);
	int iters = atoi(argv[2]), ranks = atoi(argv[3]), rank = 0;
	int to[64][2];
	if (bytes < 4 || iters < 1 || ranks < 1 || ranks > 64) {
		fprintf(stderr, "loop: at least 4 bytes, 1 iteration and 1 rank, at most 64 ranks\n");
		return 2;
	}
	// No library is open before the fork: neither CUDA nor NCCL survives one.
	for (int r = 1; r < ranks; r++) {
		TRY(pipe(to[r]));
		if (fork() == 0) {
			rank = r;
			break;
		}
	}
	const char *multi = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
	if (argc == 5 && !(multi && *multi == '1')) {
		char host[32];
		snprintf(host, sizeof host, "goccl-rank-%d", rank);
		setenv("NCCL_HOSTID", host, 1);
	}
	void *nccl = library("GOCCL_NCCL_LIB", names, 1);
	void *memory, *stream;
	device(argc == 5 ? atoi(argv[4]) : rank, bytes, &memory, &stream);
	g_uid id;
	if (rank == 0) {
		TRY(((g_res (*)(g_uid *))find(nccl, "ncclGetUniqueId"))(&id));
		for (int r = 1; r < ranks; r++)
			TRY(write(to[r][1], &id, sizeof id) != sizeof id);
	} else {
		TRY(read(to[rank][0], &id, sizeof id) != sizeof id);
	}
	g_comm comm;
	TRY(((g_res (*)(g_comm *, int, g_uid, int))find(nccl, "ncclCommInitRank"))(&comm, ranks, id, rank));
	g_res (*all_reduce)(const void *, void *, size_t, g_dtype, g_op, g_comm, g_stream) = (void *)find(nccl, "ncclAllReduce");
	double start = 0;
	for (int i = -5; i < iters; i++) {
		if (i == 0) {
			TRY(wait_for(stream));
			start = now();
		}
		TRY(all_reduce(memory, memory, bytes / 4, GCCL_FLOAT32, GCCL_SUM, comm, stream));
	}
	TRY(wait_for(stream));
	if (rank == 0)
		printf("%.3f\n", (now() - start) / iters);
	TRY(((g_res (*)(g_comm))find(nccl, "ncclCommDestroy"))(comm));
	int failed = 0, status;
	while (rank == 0 && wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
