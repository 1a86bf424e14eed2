// siblings LIBRARY DIR: two ranks that were forked from one process, and have loaded the library afterwards, as
// Python's fork and forkserver make them. Their memory lies at the same addresses. It prints what is not as it should be,
// and returns how much that is.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>

#define GOCCL_TYPES_ONLY
#include "goccl.h"

static void (*goccl_value)(uintptr_t, const void *, uint64_t);
#include "store.h"

enum { n = 1 << 18 };

static int rank(const char *library, char *dir, int me, int32_t *x) {
	int wrong = 0;
	void *lib = dlopen(library, RTLD_NOW);
	if (!lib)
		return fprintf(stderr, "%s\n", dlerror());
	int32_t (*open)(const goccl_options *, goccl_comm *, goccl_error *) = dlsym(lib, "goccl_open");
	int32_t (*call)(goccl_comm, const goccl_args *, int32_t, int64_t, goccl_done, void *, goccl_error *) =
		dlsym(lib, "goccl_call");
	int32_t (*close)(goccl_comm, goccl_error *) = dlsym(lib, "goccl_close");
	goccl_value = dlsym(lib, "goccl_value");
	goccl_error err;
	goccl_comm comm;
	goccl_options o = { .size = sizeof o, .rank = me, .ranks = 2, .prefix = "job", .store = { dir, set, get } };
	for (int i = 0; i < n; i++)
		x[i] = me ? -1 : i;
	goccl_args sent = { .kind = GOCCL_BROADCAST, .type = GOCCL_INT32, .dst = x, .dst_n = n };
	if (open(&o, &comm, &err) || call(comm, &sent, 1, 0, NULL, NULL, &err) || close(comm, &err))
		return fprintf(stderr, "rank %d: %s\n", me, err.text);
	for (int i = 0; i < n; i++)
		wrong += x[i] != i;
	if (wrong)
		fprintf(stderr, "rank %d: %d of %d elements are wrong\n", me, wrong, n);
	return wrong;
}

int main(int argc, char **argv) {
	int status, wrong = 0;
	int32_t *x = malloc(n * sizeof *x);
	for (int me = 0; me < 2; me++)
		if (!fork())
			_exit(rank(argv[1], argv[2], me, x) != 0);
	while (wait(&status) > 0)
		wrong += status != 0;
	return wrong;
}
