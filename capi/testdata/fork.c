// A forked child of a program that has loaded the library gets an error from each function, at once, whatever the parent was doing; and may
// start a program that uses it. fork [AGAIN]. It prints what is not as it should be, and returns how much that is.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "goccl.h"

static int wrong;
static const char *when;
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "%s, line %d: %s: %d %s\n", when, __LINE__, #x, err.code, err.text), wrong++; \
} while (0)
#define REFUSED(x) do { \
	memset(&err, 0, sizeof err); \
	CHECK((x) == GOCCL_ERR_CLOSED && err.code == GOCCL_ERR_CLOSED && err.peer == -1 && strstr(err.text, "forked child")); \
} while (0)

static int ended, going;
static void on_done(void *ctx, const goccl_error *e) { *(int *)ctx = e ? e->code : 100; }
static void on_arrived(void *ctx, int32_t from, const goccl_error *e) { *(int *)ctx = e && from == -1 ? e->code : 100; }
static void on_barrier(void *ctx, const goccl_error *e) { __atomic_store_n((int *)ctx, e ? -1 : 1, __ATOMIC_SEQ_CST); }
static int32_t set(void *ctx, const char *key, const void *value, uint64_t n) { return 1; }
static int32_t get(void *ctx, const char *key, int64_t timeout, uintptr_t value) { return 1; }

static goccl_args barrier = { .kind = GOCCL_BARRIER };

// refused makes every call in a child, which an alarm ends if one hangs.
static void refused(const char *now, goccl_comm comm) {
	when = now;
	int pid = fork(), status = 0;
	if (pid) {
		waitpid(pid, &status, 0);
		if (status)
			fprintf(stderr, "a child %s ends with status %#x\n", when, status), wrong++;
		return;
	}
	alarm(30);
	goccl_error err;
	goccl_comm made = 7;
	goccl_options o = { .size = sizeof o, .ranks = 1, .store = { NULL, set, get } };
	goccl_args message = { .kind = GOCCL_RECV, .type = GOCCL_INT8 };
	char text[16] = "as it is";
	int32_t one = 0, from = 7;
	void *memory = text;
	for (int i = 0; i < 100; i++) { // more often than Go can be entered before it needs its other threads
		REFUSED(goccl_open(&o, &made, &err));
		REFUSED(goccl_open_later(&o, &made, &err));
		REFUSED(goccl_join(NULL, &made, &err));
		REFUSED(goccl_split(comm, 0, 0, &made, &err));
		REFUSED(goccl_subset(comm, &one, 1, 0, 0, &made, &err));
		REFUSED(goccl_shrink(comm, &made, &err));
		REFUSED(goccl_replace(comm, 0, &made, &err));
		REFUSED(goccl_restored(comm, &err));
		REFUSED(goccl_monitored_barrier(comm, 0, &err));
		CHECK(goccl_fresh(comm, &one, 1) == -1 && goccl_waiting(comm) == -1);
		CHECK(made == 0);
		REFUSED(goccl_close(comm, &err));
		REFUSED(goccl_abort(comm, "so", &err));
		REFUSED(goccl_failed(comm, &err));
		CHECK(goccl_rank(comm) == -1 && goccl_size(comm) == -1);
		REFUSED(goccl_describe(comm, text, sizeof text, &err));
		REFUSED(goccl_supports(comm, GOCCL_BARRIER, 0, 0, &err));
		REFUSED(goccl_call(comm, &barrier, 1, 0, NULL, NULL, &err));
		REFUSED(goccl_message(comm, &message, 0, 0, NULL, NULL, &from, &err));
		CHECK(from == -1);
		REFUSED(goccl_alloc(comm, 8, &memory, &err));
		CHECK(memory == NULL);
		CHECK(goccl_call(comm, &barrier, 1, 0, on_done, &ended, NULL) == 0 && ended == GOCCL_ERR_CLOSED);
		CHECK(goccl_message(comm, &message, 0, 0, on_arrived, &ended, NULL, NULL) == 0 && ended == GOCCL_ERR_CLOSED);
		CHECK(goccl_close(comm, NULL) == GOCCL_ERR_CLOSED);
		goccl_open(&o, NULL, NULL);
		goccl_alloc(comm, 8, NULL, NULL);
		goccl_value(0, "", 0);
		goccl_free(text);
		CHECK(goccl_abi() == GOCCL_ABI && *goccl_version() == 0);
	}
	_exit(wrong);
}

// calls makes calls until the program says that it is enough.
static void *calls(void *comm) {
	while (__atomic_load_n(&going, __ATOMIC_SEQ_CST))
		goccl_call(*(goccl_comm *)comm, &barrier, 1, 0, NULL, NULL, NULL);
	return NULL;
}

int main(int argc, char **argv) {
	goccl_error err = { 0 };
	goccl_comm comm = 0;
	alarm(120);
	if (argc == 1)
		refused("before the first call", 1);
	when = "in the parent";
	CHECK(goccl_join(NULL, &comm, &err) == 0);
	if (argc > 1) {
		CHECK(goccl_call(comm, &barrier, 1, 0, NULL, NULL, &err) == 0 && goccl_close(comm, &err) == 0);
		return wrong;
	}
	refused("beside a Comm", comm);
	pthread_t other;
	going = 1;
	pthread_create(&other, NULL, calls, &comm);
	for (int i = 0; i < 20; i++)
		refused("while a thread makes calls", comm);
	__atomic_store_n(&going, 0, __ATOMIC_SEQ_CST);
	pthread_join(other, NULL);

	// The parent goes on, and a program that a child starts has a library of its own.
	when = "in the parent, afterwards";
	int over = 0, status = 0, pid = fork();
	if (!pid) {
		execl(argv[0], argv[0], "again", NULL);
		_exit(9);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(goccl_call(comm, &barrier, 1, 0, on_barrier, &over, NULL) == 0);
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		usleep(1000);
	CHECK(over == 1);
	CHECK(strlen(goccl_version()) > 4);
	CHECK(goccl_close(comm, &err) == 0);
	return wrong;
}
