// How the ranks of a communicator meet: a full mesh of abstract unix sockets, named by the unique id. So nothing is left behind
// when a process dies, and its peers see that it did.
#define _GNU_SOURCE
#include "ccl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static socklen_t address(struct sockaddr_un *a, const g_uid *id, int rank) {
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	return sizeof(sa_family_t) + 1 + snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "fake-nccl-%.80s-%d", id->internal, rank);
}

// greet moves a small fixed message.
static int greet(g_comm c, int fd, void *p, size_t n, int out) {
	for (size_t k = 0; k < n;) {
		struct pollfd f = { fd, out ? POLLOUT : POLLIN, 0 };
		if (c->abort)
			return GCCL_INTERNAL;
		if (poll(&f, 1, 10) < 1)
			continue;
		ssize_t r = out ? send(fd, (char *)p + k, n - k, MSG_NOSIGNAL) : recv(fd, (char *)p + k, n - k, 0);
		if (r <= 0 && !(r < 0 && errno == EINTR))
			return GCCL_REMOTE;
		k += r > 0 ? r : 0;
	}
	return 0;
}

typedef struct { int rank, kind, size; } hello;

static int overdue(g_comm c, double end, const char *what) {
	if (c->abort)
		return GCCL_INTERNAL;
	if (now() < end)
		return 0;
	return warn("rank %d: %s", c->rank, what), GCCL_SYSTEM;
}

static int call(g_comm c, int peer, int kind, double end) {
	struct sockaddr_un a;
	socklen_t n = address(&a, &c->id, peer);
	hello mine = { c->rank, kind, c->size };
	for (int error;;) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(s, (void *)&a, n)) {
			c->fd[peer][kind] = s;
			return greet(c, s, &mine, sizeof mine, 1);
		}
		close(s);
		if ((error = overdue(c, end, "a rank does not answer")))
			return error;
		usleep(2000);
	}
}

static int answer(g_comm c, int listener, double end) {
	for (int left = (c->size - 1 - c->rank) * KINDS, error; left > 0;) {
		struct pollfd f = { listener, POLLIN, 0 };
		hello h;
		if ((error = overdue(c, end, "not all ranks have come")))
			return error;
		if (poll(&f, 1, 10) < 1)
			continue;
		int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (s < 0)
			continue;
		if ((error = greet(c, s, &h, sizeof h, 0)) == GCCL_REMOTE) { // it left without a word: no rank does
			close(s);
			continue;
		}
		if (error) {
			close(s);
			return error;
		}
		if (h.size != c->size || h.rank <= c->rank || h.rank >= c->size || c->fd[h.rank][h.kind] >= 0) {
			close(s);
			return warn("rank %d of %d has come to rank %d of %d", h.rank, h.size, c->rank, c->size), GCCL_INVALID_USAGE;
		}
		c->fd[h.rank][h.kind] = s;
		left--;
	}
	return 0;
}

// gather gives all ranks what each has, on the control sockets.
int gather(g_comm c, void *mine, void *all, size_t n) {
	transfer t[2 * MAX_RANKS];
	int k = 0;
	for (int p = 0; p < c->size; p++) {
		t[k++] = (transfer){ p, CONTROL, mine, NULL, n, 0 };
		t[k++] = (transfer){ p, CONTROL, NULL, (char *)all + p * n, n, 0 };
	}
	return exchange(c, t, k);
}

typedef struct { int device; char host[60]; } seat;

int meet(g_comm c) {
	struct sockaddr_un a;
	double end = now() + c->patience;
	int error = 0, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = address(&a, &c->id, c->rank);
	c->fd = malloc(c->size * sizeof *c->fd);
	memset(c->fd, -1, c->size * sizeof *c->fd);
	memset(c->self, -1, sizeof c->self);
	if (bind(listener, (void *)&a, n) || listen(listener, 4 * MAX_RANKS)) {
		close(listener);
		return warn("there is a rank %d of this unique id already", c->rank), GCCL_INVALID_USAGE;
	}
	for (int k = 0; k < KINDS; k++) {
		int pair[2];
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
		c->fd[c->rank][k] = pair[0];
		c->self[k] = pair[1];
	}
	for (int p = 0; p < c->rank && !error; p++)
		for (int k = 0; k < KINDS && !error; k++)
			error = call(c, p, k, end);
	if (!error)
		error = answer(c, listener, end);
	close(listener);
	seat mine = { .device = physical(c->device) }, all[MAX_RANKS];
	snprintf(mine.host, sizeof mine.host, "%s", getenv("NCCL_HOSTID") ? getenv("NCCL_HOSTID") : "here");
	if (!error)
		error = gather(c, &mine, all, sizeof mine);
	// NCCL 2.30.3 and newer allow it with this variable (ncclParamMultiRankGpuEnable in init.cc).
	const char *multi = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
	int shared = knob("NCCL_SHARED_DEVICES", 0) || (multi && *multi == '1' && fake_version() >= 23003);
	for (int p = 0; p < c->size && !error; p++)
		c->mates |= (unsigned long)!strcmp(all[p].host, mine.host) << p;
	for (int p = 0; p < c->size && !error && !shared; p++)
		if (p != c->rank && all[p].device == mine.device && !strcmp(all[p].host, mine.host))
			error = (warn("Duplicate GPU detected : rank %d and rank %d both on device %d", c->rank, p, mine.device), GCCL_INVALID_USAGE);
	return error;
}

void part(g_comm c) {
	for (int k = 0; k < KINDS && c->fd; k++) {
		if (c->self[k] >= 0)
			close(c->self[k]);
		for (int p = 0; p < c->size; p++)
			if (c->fd[p][k] >= 0)
				close(c->fd[p][k]);
	}
	free(c->fd);
	c->fd = NULL;
}
