// A program of a later goccl.h, whose structs have a field more, on a library that does not know it: all is well where that is 0.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "goccl.h"

#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "line %d: %s: %d %s\n", __LINE__, #x, err.code, err.text), wrong++; \
} while (0)

typedef struct { goccl_options now; int64_t more; } options;
typedef struct { goccl_args now; int64_t more; } args;

static int32_t told;
static void done(void *ctx, const goccl_error *err) { told = err ? err->code : -1; }

int main(void) {
	int wrong = 0;
	goccl_error err;
	goccl_comm comm;
	options o = { .now = { .size = sizeof o } };
	if (strcmp(goccl_version(), GOCCL_VERSION) || goccl_abi() != GOCCL_ABI)
		fprintf(stderr, "the library is %s, and the header " GOCCL_VERSION "\n", goccl_version()), wrong++;

	o.more = 1;
	CHECK(goccl_join(&o.now, &comm, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "must be 0") && !comm);
	o.more = 0;
	CHECK(goccl_join(&o.now, &comm, &err) == 0);

	int32_t x[3] = { 1, 2, 3 }, y[3] = { 0 };
	args calls[3];
	for (int i = 0; i < 3; i++)
		calls[i] = (args){ .now = { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_INT32, .dst = &y[i], .dst_n = 1, .src = &x[i], .src_n = 1 } };
	CHECK(goccl_calls(comm, &calls[0].now, 3, sizeof *calls, 0, NULL, NULL, &err) == 0 && !memcmp(x, y, sizeof x));
	calls[2].more = 1;
	CHECK(goccl_calls(comm, &calls[0].now, 3, sizeof *calls, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "must be 0"));
	CHECK(goccl_calls(comm, &calls[0].now, 3, sizeof *calls, 0, done, NULL, &err) == 0 && told == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_calls(comm, &calls[0].now, 1, 8, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "goccl_args.size is 8"));
	CHECK(goccl_calls(comm, &calls[0].now, INT32_MAX, sizeof *calls, 0, NULL, NULL, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_calls(comm, &calls[0].now, 2, sizeof *calls, 0, NULL, NULL, &err) == 0);
	CHECK(goccl_close(comm, &err) == 0);
	return wrong;
}
