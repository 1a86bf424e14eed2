// A program that was started alone, and its errors: a success clears what a failure has left in *err.
// It prints its line of goccl_describe.
#include <stdio.h>

#include "goccl.h"

static int wrong;
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "line %d: %s: %d %s\n", __LINE__, #x, err.code, err.text), wrong++; \
} while (0)
#define CLEARED(x) do { \
	err = (goccl_error){ .code = 77, .peer = 5, .missing_n = 3, .text = "of another call" }; \
	CHECK((x) == 0 && err.code == 0 && err.peer == -1 && err.missing_n == 0 && !err.text[0]); \
} while (0)

static void on_done(void *ctx, const goccl_error *e) { *(int *)ctx = e ? e->code : 100; }
static void on_arrived(void *ctx, int32_t from, const goccl_error *e) { *(int *)ctx = e ? e->code : 100; }

int main(void) {
	goccl_error err;
	goccl_comm comm, child;
	char text[200];
	int32_t one = 0;
	int ended = 0;
	void *memory;
	goccl_options o = { .size = sizeof o };
	goccl_args barrier = { .kind = GOCCL_BARRIER }, bad = { .kind = 77 };
	CLEARED(goccl_join(&o, &comm, &err));
	CLEARED(goccl_describe(comm, text, sizeof text, &err));
	puts(text);
	CLEARED(goccl_supports(comm, GOCCL_ALL_REDUCE, GOCCL_INT8, GOCCL_SUM, &err));
	CLEARED(goccl_call(comm, &barrier, 1, 0, NULL, NULL, &err));
	CLEARED(goccl_call(comm, &bad, 1, 0, on_done, &ended, &err));
	CHECK(ended == GOCCL_ERR_ARGUMENT);
	CLEARED(goccl_message(comm, &bad, 0, 0, on_arrived, &ended, NULL, &err));
	CHECK(ended == GOCCL_ERR_ARGUMENT);
	CLEARED(goccl_split(comm, 0, 0, &child, &err));
	CLEARED(goccl_close(child, &err));
	CLEARED(goccl_subset(comm, &one, 1, 0, 0, &child, &err));
	CLEARED(goccl_close(child, &err));
	CLEARED(goccl_alloc(comm, 100, &memory, &err));
	goccl_free(memory);
	CLEARED(goccl_failed(comm, &err));
	CLEARED(goccl_abort(comm, "enough", &err));
	while (!goccl_failed(comm, NULL)) {}
	CHECK(goccl_call(comm, &barrier, 1, 0, NULL, NULL, &err) == GOCCL_ERR_ABORTED && err.code == GOCCL_ERR_ABORTED);
	CLEARED(goccl_shrink(comm, &child, &err));
	CLEARED(goccl_close(child, &err));
	goccl_close(comm, NULL);
	return wrong;
}
