// Two ranks of one process, a thread each, meet in a store of the program's own, add vectors, and pass a message on.
//
//	CGO_ENABLED=1 go build -buildmode=c-shared -o libgoccl.so ./capi
//	cc -I include -o sum capi/testdata/sum.c -L. -lgoccl -Wl,-rpath,. -lpthread && ./sum
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "goccl.h"

#ifndef HOST
#define HOST NULL // where rank me runs; NULL: the library finds out
#endif

static struct { char *key; void *value; uint64_t n; } kept[64];
static int keys;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

static int32_t set(void *ctx, const char *key, const void *value, uint64_t n) {
	pthread_mutex_lock(&mu);
	kept[keys].key = strdup(key);
	kept[keys].value = memcpy(malloc(n + 1), value, n);
	kept[keys++].n = n;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&mu);
	return 0;
}

static int32_t get(void *ctx, const char *key, int64_t timeout, uintptr_t value) {
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout / 1000000000 < 60 ? timeout / 1000000000 + 1 : 60;
	pthread_mutex_lock(&mu);
	int late = 0, at = 0;
	for (;;) {
		for (at = 0; at < keys && strcmp(kept[at].key, key); at++) {}
		if (at < keys || late)
			break;
		late = pthread_cond_timedwait(&news, &mu, &until);
	}
	if (at < keys)
		goccl_value(value, kept[at].value, kept[at].n);
	pthread_mutex_unlock(&mu);
	return at < keys ? 0 : late;
}

static void must(int32_t code, const goccl_error *err) {
	if (code) {
		fprintf(stderr, "%d: %s\n", code, err->text);
		exit(1);
	}
}

static void done(void *ctx, const goccl_error *err) {
	must(err ? err->code : 0, err);
	sem_post(ctx);
}

static void *rank(void *arg) {
	goccl_error err;
	goccl_comm comm;
	int me = (int)(intptr_t)arg;
	goccl_options o = { .size = sizeof o, .rank = me, .ranks = 2, .host = HOST, .prefix = "sum", .store = { NULL, set, get } };
	must(goccl_open(&o, &comm, &err), &err);

	float x[4] = { 1, 2, 3, (float)me };
	goccl_args sum = { .kind = GOCCL_ALL_REDUCE, .type = GOCCL_FLOAT32, .op = GOCCL_SUM, .dst = x, .dst_n = 4, .flags = GOCCL_IN_PLACE };
	must(goccl_call(comm, &sum, 1, 0, NULL, NULL, &err), &err);

	int32_t y = me, z = -1;
	goccl_args pass = { .kind = GOCCL_SEND_RECV, .type = GOCCL_INT32, .root = 1 - me, .to = 1 - me, .dst = &z, .dst_n = 1, .src = &y, .src_n = 1 };
	sem_t ended;
	sem_init(&ended, 0, 0);
	goccl_call(comm, &pass, 1, 0, done, &ended, NULL);
	sem_wait(&ended);
	printf("rank %d: %g %g %g %g, and %d from the other\n", goccl_rank(comm), x[0], x[1], x[2], x[3], z);
	must(goccl_close(comm, &err), &err);
	return NULL;
}

int main(void) {
	pthread_t other;
	pthread_create(&other, NULL, rank, (void *)1);
	rank((void *)0);
	pthread_join(other, NULL);
	return 0;
}
