#include "ccl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

static int descriptor(g_comm c, const transfer *t) {
	return !t->out && t->peer == c->rank ? c->self[t->kind] : c->fd[t->peer][t->kind];
}

// first reports whether t[i] is the first of its peer, kind and direction that is not done.
static int first(const transfer *t, int i) {
	for (int k = 0; k < i; k++)
		if (t[k].done < t[k].n && t[k].peer == t[i].peer && t[k].kind == t[i].kind && !t[k].out == !t[i].out)
			return 0;
	return t[i].done < t[i].n;
}

int exchange(g_comm c, transfer *t, int n) {
	struct pollfd *p = malloc(n * sizeof *p);
	int *who = malloc(n * sizeof *who), left = 0, error = 0;
	for (int i = 0; i < n; i++)
		left += t[i].n > 0;
	while (left && !error) {
		int k = 0;
		for (int i = 0; i < n; i++)
			if (first(t, i)) {
				p[k] = (struct pollfd){ descriptor(c, &t[i]), t[i].out ? POLLOUT : POLLIN, 0 };
				who[k++] = i;
			}
		if (c->abort)
			error = GCCL_INTERNAL;
		else if (poll(p, k, 10) < 0 && errno != EINTR)
			error = GCCL_SYSTEM;
		for (int i = 0; i < k && !error; i++) {
			transfer *x = &t[who[i]];
			if (!p[i].revents)
				continue;
			ssize_t r = x->out ? send(p[i].fd, x->out + x->done, x->n - x->done, MSG_NOSIGNAL | MSG_DONTWAIT)
			                   : recv(p[i].fd, x->in + x->done, x->n - x->done, MSG_DONTWAIT);
			if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR)) {
				warn("rank %d: peer %d has gone", c->rank, x->peer);
				error = GCCL_REMOTE;
			} else if (r > 0 && (x->done += r) == x->n) {
				left--;
			}
		}
	}
	free(p);
	free(who);
	return error;
}
