// One rank of two, a process each, that meet in a directory: rank DIR 0, and rank DIR 1.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "goccl.h"

#ifndef HOST
#define HOST NULL // where rank me runs; NULL: the library finds out
#endif

// file is where a key lies, in the directory ctx.
static char *file(char *name, size_t n, void *ctx, const char *key) {
	int at = snprintf(name, n, "%s/", (char *)ctx);
	for (; *key && at < (int)n - 1; key++)
		name[at++] = *key == '/' ? '_' : *key;
	name[at] = 0;
	return name;
}

static int32_t set(void *ctx, const char *key, const void *value, uint64_t n) {
	char name[512], part[520];
	snprintf(part, sizeof part, "%s.part", file(name, sizeof name, ctx, key));
	FILE *f = fopen(part, "w");
	return !f || fwrite(value, 1, n, f) != n || fclose(f) || rename(part, name);
}

static int32_t get(void *ctx, const char *key, int64_t timeout, uintptr_t value) {
	char name[512];
	static char text[1 << 16];
	for (int64_t left = timeout; left > 0; left -= 1000000, usleep(1000)) {
		FILE *f = fopen(file(name, sizeof name, ctx, key), "r");
		if (!f)
			continue;
		goccl_value(value, text, fread(text, 1, sizeof text, f));
		fclose(f);
		return 0;
	}
	return 1;
}

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
