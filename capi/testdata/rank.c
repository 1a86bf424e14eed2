// One rank of two, a process each, that meet in a directory: rank DIR 0, and rank DIR 1.
#include <stdio.h>
#include <stdlib.h>

#include "store.h"

#ifndef HOST
#define HOST NULL // where rank me runs; NULL: the library finds out
#endif

static void must(int32_t code, const goccl_error *err) {
	if (code) {
		fprintf(stderr, "%d: %s\n", code, err->text);
		exit(1);
	}
}

int main(int argc, char **argv) {
	goccl_error err;
	goccl_comm comm;
	int me = argc == 3 ? atoi(argv[2]) : 0;
	goccl_options o = { .size = sizeof o, .rank = me, .ranks = 2, .host = HOST, .prefix = "job", .store = { argv[1], set, get } };
	must(goccl_open(&o, &comm, &err), &err);
	float x = 1;
	goccl_args sum = { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_FLOAT32, .op = GOCCL_SUM, .dst = &x, .dst_n = 1, .flags = GOCCL_IN_PLACE };
	must(goccl_call(comm, &sum, 1, 0, NULL, NULL, &err), &err);
	printf("%g\n", x);
	must(goccl_close(comm, &err), &err);
	return 0;
}
