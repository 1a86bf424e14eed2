// One of five processes, three ranks and two spares, that meet in a directory: spares DIR RANK. Rank 1 ends; a spare
// has its place, and the other spare is not needed. It prints what is not as it should be, and returns how much that is.
#include <stdlib.h>
#include <string.h>

#include "store.h"

static int wrong;
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "rank %d, line %d: %s: %d %s\n", me, __LINE__, #x, err.code, err.text), wrong++; \
} while (0)

int main(int argc, char **argv) {
	goccl_error err;
	goccl_comm comm, next;
	int me = argc == 3 ? atoi(argv[2]) : 0;
	int32_t fresh[3] = { 7, 7, 7 };
	goccl_options o = { .size = sizeof o, .rank = me, .ranks = 5, .prefix = "job", .spares = 5,
		.store = { argv[1], set, get } };
	CHECK(goccl_open(&o, &comm, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "goccl_options.spares is 5 of 5 ranks"));
	o.spares = 2;
	CHECK(goccl_open_later(&o, &comm, &err) == GOCCL_ERR_ARGUMENT && strstr(err.text, "no spares"));

	int32_t code = goccl_open(&o, &comm, &err);
	if (code == GOCCL_ERR_UNUSED) {
		CHECK(me > 2 && strstr(err.text, "was not needed: the job has ended"));
		return wrong ? 1 : 3;
	}
	CHECK(code == 0 && goccl_size(comm) == 3);
	float x = 1;
	goccl_args sum = { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_FLOAT32, .op = GOCCL_SUM, .dst = &x, .dst_n = 1,
		.flags = GOCCL_IN_PLACE };
	if (me < 3) {
		CHECK(goccl_rank(comm) == me && goccl_waiting(comm) == 2 && goccl_fresh(comm, fresh, 3) == 0 && fresh[0] == 7);
		CHECK(goccl_call(comm, &sum, 1, 0, NULL, NULL, &err) == 0 && x == 3);
		if (me == 1)
			_exit(9);
		CHECK(goccl_call(comm, &sum, 1, 0, NULL, NULL, &err) == GOCCL_ERR_RANK_LOST && err.peer == 1);
		CHECK(goccl_replace(comm, -1, &next, &err) == GOCCL_ERR_ARGUMENT && next == 0);
		CHECK(goccl_replace(comm, 0, &next, &err) == 0);
		CHECK(goccl_close(comm, &err) == 0);
		comm = next;
	}
	CHECK(goccl_rank(comm) == (me < 3 ? me : 1) && goccl_size(comm) == 3 && goccl_waiting(comm) == 1);
	CHECK(goccl_fresh(comm, NULL, 0) == 1 && goccl_fresh(comm, fresh, 3) == 1 && fresh[0] == 1 && fresh[1] == 7);
	x = 2;
	CHECK(goccl_call(comm, &sum, 1, 0, NULL, NULL, &err) == 0 && x == 6);
	CHECK(goccl_restored(comm, &err) == 0);
	int32_t two[2] = { 0, 1 };
	if (goccl_rank(comm) < 2) {
		CHECK(goccl_subset(comm, two, 2, 0, 0, &next, &err) == 0);
		CHECK(goccl_replace(next, 0, &next, &err) == GOCCL_ERR_UNSUPPORTED && next == 0 && strstr(err.text, "spares"));
	}
	CHECK(goccl_monitored_barrier(comm, -1, &err) == GOCCL_ERR_ARGUMENT);
	CHECK(goccl_monitored_barrier(comm, 0, &err) == 0);
	goccl_comm all;
	CHECK(goccl_split(comm, 0, 0, &all, &err) == 0);
	if (goccl_rank(comm) != 1) { // which does not come
		CHECK(goccl_monitored_barrier(all, 50000000, &err) == GOCCL_ERR_TIMEOUT);
		CHECK(err.missing_n == 1 && err.missing[0] == 1 && !strstr(err.text, ".go:") && goccl_failed(comm, &err) == 0);
	}
	CHECK(goccl_monitored_barrier(comm, 0, &err) == 0);
	CHECK(goccl_close(all, NULL) == 0 || goccl_rank(comm) == 1);
	char name[512];
	if (goccl_rank(comm) == 0) { // the others never call it
		CHECK(goccl_replace(comm, 50000000, &next, &err) == GOCCL_ERR_TIMEOUT && next == 0);
		CHECK(set(argv[1], "alone", "1", 1) == 0);
	} else
		while (access(file(name, sizeof name, argv[1], "alone"), F_OK))
			usleep(1000);
	goccl_close(comm, &err); // which has failed by that
	CHECK(goccl_waiting(comm) == -1 && goccl_fresh(comm, fresh, 3) == -1);
	CHECK(goccl_restored(comm, &err) == GOCCL_ERR_ARGUMENT);
	return wrong;
}
