/*
 * stream.c - what TCP carries between two programs in C, to hold the engine against:
 *
 *   stream serve PORT CONNECTIONS              receives, and returns each message of 8 bytes or fewer
 *   stream send ADDRESS PORT CONNECTIONS MS    sends for so long, as fast as it can; prints bytes per microsecond
 *   stream pingpong ADDRESS PORT MS            8 bytes there and back; prints the microseconds of one way
 *
 * As in the engine one thread moves the bytes of all connections, in calls of the kernel that never block, and one end writes
 * from memory of 64 MiB into another's. A connection that has nothing to do costs a look; all of them idle, a poll(2).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, PIECE = 512 << 10, MEMORY = 64 << 20 };

static char *memory;
static struct pollfd all[MOST];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t s;

	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	sched_setaffinity(0, sizeof s, &s);
}

static int tune(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* moves bytes of every connection, in turns, until each has ended (receiving) or the time is over (sending). */
static double pump(int n, int sending, double until)
{
	double bytes = 0;
	size_t at = 0;
	int left = n;

	while (left > 0 && (!sending || now_us() < until)) {
		int moved = 0;

		for (int i = 0; i < n; i++) {
			ssize_t k;

			if (all[i].fd < 0)
				continue;
			if (sending)
				k = send(all[i].fd, memory + at, PIECE, MSG_DONTWAIT | MSG_NOSIGNAL);
			else
				k = recv(all[i].fd, memory + at, PIECE, MSG_DONTWAIT);
			if (k > 0) {
				bytes += k;
				moved = 1;
				at = (at + PIECE) % (MEMORY - PIECE);
				if (!sending && k <= 8 && send(all[i].fd, memory, k, MSG_NOSIGNAL) < 0)
					die("send");
			} else if (k == 0) {
				shutdown(all[i].fd, SHUT_WR);
				all[i].fd = -1;
				left--;
			} else if (errno != EAGAIN && errno != EINTR) {
				die(sending ? "send" : "recv");
			}
		}
		if (!moved && n > 1)
			poll(all, n, 1);
	}
	return bytes;
}

static void dial(const char *address, int port, int n)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		die(address);
	for (int i = 0; i < n; i++) {
		const int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
			die("connect");
		all[i] = (struct pollfd){.fd = tune(fd), .events = POLLOUT};
	}
}

static void serve(int port, int n)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int l = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&here, sizeof here) < 0 || listen(l, MOST) < 0)
		die("listen");
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		const int fd = accept(l, NULL, NULL);

		if (fd < 0)
			die("accept");
		all[i] = (struct pollfd){.fd = tune(fd), .events = POLLIN};
	}
	pump(n, 0, 0);
}

/* The bytes count when the other end has received them, as its own end then tells. */
static void send_all(int n, double ms)
{
	const double began = now_us();
	const double bytes = pump(n, 1, began + ms * 1e3);
	char b;

	for (int i = 0; i < n; i++)
		shutdown(all[i].fd, SHUT_WR);
	for (int i = 0; i < n; i++) {
		fcntl(all[i].fd, F_SETFL, 0);
		while (recv(all[i].fd, &b, 1, 0) > 0)
			;
	}
	printf("%.2f\n", bytes / (now_us() - began));
}

static void pingpong(double ms)
{
	const double began = now_us();
	double now;
	long turns = 0;
	char b[8] = "goccl";

	do {
		for (int i = 0; i < 100; i++, turns++) {
			ssize_t k;

			if (send(all[0].fd, b, sizeof b, MSG_NOSIGNAL) != sizeof b)
				die("send");
			while ((k = recv(all[0].fd, b, sizeof b, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
				;
			if (k != sizeof b)
				die("recv");
		}
		now = now_us();
	} while (now < began + ms * 1e3);
	printf("%.3f\n", (now - began) / turns / 2);
}

int main(int argc, char **argv)
{
	const int serving = argc == 4 && !strcmp(argv[1], "serve"), sending = argc == 6 && !strcmp(argv[1], "send");
	const int n = serving ? atoi(argv[3]) : sending ? atoi(argv[4]) : 1;

	if (!serving && !sending && !(argc == 5 && !strcmp(argv[1], "pingpong"))) {
		fprintf(stderr, "usage: stream serve PORT CONNECTIONS | send ADDRESS PORT CONNECTIONS MS | pingpong ADDRESS PORT MS\n");
		return 2;
	}
	if (n < 1 || n > MOST)
		return fprintf(stderr, "stream: %d connections: 1 to %d\n", n, MOST), 2;
	if (!(memory = malloc(MEMORY)))
		die("malloc");
	memset(memory, 1, MEMORY);
	pin(serving ? 1 : 0);
	if (serving) {
		serve(atoi(argv[2]), n);
		return 0;
	}
	dial(argv[2], atoi(argv[3]), n);
	if (sending)
		send_all(n, atof(argv[5]));
	else
		pingpong(atof(argv[4]));
	return 0;
}
