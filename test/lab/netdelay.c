/*
 * usage: netdelay IF_A IF_B DELAY_US [LOSS_PERCENT [JITTER_US]]
 *
 * Passes frames between two interfaces, each way with a one-way delay: what tc netem does, for
 * kernels built without it. Needs CAP_NET_RAW. Frames larger than the MTU (GSO) pass whole, with
 * their PACKET_VNET_HDR. Prints "ready" once both interfaces are open.
 *
 * cc -O2 -o netdelay netdelay.c
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	FRAME_MAX = 65536 + 64, /* the largest GSO frame and its headers */
	SLOTS = 16384,		/* frames held per direction */
	BATCH = 256,		/* frames received before the other direction has its turn */
	SOCKET_BUFFER = 64 << 20,
};

static const long HELD_MAX = 256L << 20; /* bytes held per direction; beyond, frames are dropped */

struct frame {
	long due; /* CLOCK_MONOTONIC, nanoseconds */
	int size;
	unsigned char *bytes;
};

/* queue d holds what came in at interface d and is to go out at the other one. */
static struct queue {
	struct frame frames[SLOTS];
	unsigned head, tail;
	long held;
} queues[2];

static long delay, jitter; /* nanoseconds */
static double loss;	   /* 0 to 1 */

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int open_interface(const char *name)
{
	int on = 1, buffer = SOCKET_BUFFER;
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name),
	};
	struct packet_mreq promiscuous = {
		.mr_ifindex = addr.sll_ifindex,
		.mr_type = PACKET_MR_PROMISC,
	};
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));

	if (s < 0 ||
	    setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) ||
	    setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
	    setsockopt(s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) ||
	    bind(s, (void *)&addr, sizeof addr)) {
		perror(name);
		exit(1);
	}
	setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
	setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
	return s;
}

/*
 * flush sends what is due of q. It returns the nanoseconds until the next frame is due, or -1 for
 * none; *full is set if the interface takes no more for now.
 */
static long flush(struct queue *q, int out, int *full)
{
	long t = now();

	*full = 0;
	while (q->head != q->tail) {
		struct frame *f = &q->frames[q->head % SLOTS];

		if (f->due > t)
			return f->due - t;
		if (send(out, f->bytes, f->size, 0) < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
			*full = 1;
			return 100000; /* ENOBUFS has no event to wait for */
		}
		q->held -= f->size;
		free(f->bytes);
		q->head++;
	}
	return -1;
}

static void receive(struct queue *q, int in)
{
	static unsigned char buf[FRAME_MAX];

	for (int k = 0; k < BATCH; k++) {
		int n = recv(in, buf, sizeof buf, MSG_TRUNC);
		struct frame *f = &q->frames[q->tail % SLOTS];

		if (n <= 0)
			return;
		if (n > FRAME_MAX || q->tail - q->head == SLOTS || q->held + n > HELD_MAX ||
		    (loss > 0 && drand48() < loss))
			continue;
		f->bytes = malloc(n);
		if (!f->bytes) {
			perror("netdelay");
			exit(1);
		}
		memcpy(f->bytes, buf, n);
		f->size = n;
		f->due = now() + delay + (jitter ? (long)(drand48() * jitter) : 0);
		q->held += n;
		q->tail++;
	}
}

int main(int argc, char **argv)
{
	if (argc < 4 || argc > 6) {
		fprintf(stderr, "usage: netdelay IF_A IF_B DELAY_US [LOSS_PERCENT [JITTER_US]]\n");
		return 2;
	}
	int sockets[2] = {open_interface(argv[1]), open_interface(argv[2])};

	delay = atof(argv[3]) * 1000;
	loss = argc > 4 ? atof(argv[4]) / 100 : 0;
	jitter = argc > 5 ? atof(argv[5]) * 1000 : 0;
	printf("ready\n");
	fflush(stdout);

	for (;;) {
		struct pollfd polls[2] = {{sockets[0], POLLIN, 0}, {sockets[1], POLLIN, 0}};
		long next = -1;

		for (int d = 0; d < 2; d++) {
			int full;
			long wait = flush(&queues[d], sockets[1 - d], &full);

			if (full)
				polls[1 - d].events |= POLLOUT;
			if (wait >= 0 && (next < 0 || wait < next))
				next = wait;
		}
		struct timespec timeout = {next / 1000000000L, next % 1000000000L};

		if (ppoll(polls, 2, next < 0 ? NULL : &timeout, NULL) < 0 && errno != EINTR) {
			perror("netdelay: ppoll");
			return 1;
		}
		for (int d = 0; d < 2; d++)
			receive(&queues[d], sockets[d]);
	}
}
