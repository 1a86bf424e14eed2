// Two processes that make a call of each kind with garbage in each field that has no meaning there: it
// changes nothing. Prints what is not as it should be, and returns how much that is.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "goccl.h"

static int wrong, me;
static const char *what = "";
#define CHECK(x) do { \
	if (!(x)) fprintf(stderr, "rank %d, line %d: %s: %s: %d %s\n", me, __LINE__, what, #x, err.code, err.text), wrong++; \
} while (0)

// The fields of goccl_args that may have a meaning.
enum { TYPE = 1, OP = 2, ROOT = 4, TO = 8, IN_PLACE = 16, DST = 32, SRC = 64, DST_COUNTS = 128, SRC_COUNTS = 256, FACTOR = 512, ALL = 1023 };

static const struct { const char *name; int kind, root, has, other; } kinds[] = { // other: those that rank 1 has, where the root is 0
	{ "AllReduce", GOCCL_ALL_REDUCE, -1, TYPE | OP | IN_PLACE | DST | SRC },
	{ "Reduce", GOCCL_REDUCE, 0, TYPE | OP | ROOT | IN_PLACE | DST | SRC, TYPE | OP | ROOT | IN_PLACE | SRC },
	{ "ReduceScatter", GOCCL_REDUCE_SCATTER, -1, TYPE | OP | IN_PLACE | DST | SRC },
	{ "ReduceScatterV", GOCCL_REDUCE_SCATTER_V, -1, TYPE | OP | IN_PLACE | DST | SRC | SRC_COUNTS },
	{ "Broadcast", GOCCL_BROADCAST, 0, TYPE | ROOT | DST },
	{ "AllGather", GOCCL_ALL_GATHER, -1, TYPE | IN_PLACE | DST | SRC },
	{ "AllGatherV", GOCCL_ALL_GATHER_V, -1, TYPE | IN_PLACE | DST | SRC | DST_COUNTS },
	{ "Gather", GOCCL_GATHER, 0, TYPE | ROOT | IN_PLACE | DST | SRC, TYPE | ROOT | IN_PLACE | SRC },
	{ "GatherV", GOCCL_GATHER_V, 0, TYPE | ROOT | IN_PLACE | DST | SRC | DST_COUNTS, TYPE | ROOT | IN_PLACE | SRC | DST_COUNTS },
	{ "Scatter", GOCCL_SCATTER, 0, TYPE | ROOT | IN_PLACE | DST | SRC, TYPE | ROOT | DST },
	{ "ScatterV", GOCCL_SCATTER_V, 0, TYPE | ROOT | IN_PLACE | DST | SRC | SRC_COUNTS, TYPE | ROOT | DST | SRC_COUNTS },
	{ "AllToAll", GOCCL_ALL_TO_ALL, -1, TYPE | IN_PLACE | DST | SRC },
	{ "AllToAllV", GOCCL_ALL_TO_ALL_V, -1, TYPE | IN_PLACE | DST | SRC | DST_COUNTS | SRC_COUNTS },
	{ "Send", GOCCL_SEND, 1, TYPE | ROOT | SRC },
	{ "Recv", GOCCL_RECV, 0, TYPE | ROOT | DST },
	{ "SendRecv", GOCCL_SEND_RECV, -2, TYPE | ROOT | TO | IN_PLACE | DST | SRC },
	{ "Barrier", GOCCL_BARRIER, -1, 0 },
};

static int32_t dst[8], src[8];
static const int64_t counts[2] = { 4, 4 };

// valid is a call of kind i as rank 0 or 1 makes it. A vector has 8 elements, a part of it 4.
static goccl_args valid(int i) {
	int k = kinds[i].kind, whole_dst = 1, whole_src = 1;
	switch (k) {
	case GOCCL_REDUCE_SCATTER: case GOCCL_REDUCE_SCATTER_V: case GOCCL_SCATTER: case GOCCL_SCATTER_V:
		whole_dst = 0;
		break;
	case GOCCL_ALL_GATHER: case GOCCL_ALL_GATHER_V: case GOCCL_GATHER: case GOCCL_GATHER_V:
		whole_src = 0;
	}
	for (int j = 0; j < 8; j++)
		dst[j] = k == GOCCL_BROADCAST && !me ? j : -1, src[j] = 10 * me + j;
	return (goccl_args){ .kind = k, .type = GOCCL_INT32, .op = GOCCL_SUM, .root = kinds[i].root == -2 ? !me : kinds[i].root, .to = !me, .factor = 1,
		.dst = dst, .dst_n = whole_dst ? 8 : 4, .src = src, .src_n = whole_src ? 8 : 4, .dst_counts = counts, .src_counts = counts };
}

// right reports whether dst is what the call makes of it.
static int right(int i) {
	for (int j = 0, want; j < 8; j++) {
		switch (kinds[i].kind) {
		case GOCCL_ALL_REDUCE: want = 10 + 2 * j; break;
		case GOCCL_REDUCE: want = me ? -1 : 10 + 2 * j; break;
		case GOCCL_REDUCE_SCATTER: case GOCCL_REDUCE_SCATTER_V: want = j < 4 ? 10 + 2 * (4 * me + j) : -1; break;
		case GOCCL_BROADCAST: want = j; break;
		case GOCCL_ALL_GATHER: case GOCCL_ALL_GATHER_V: want = 10 * (j / 4) + j % 4; break;
		case GOCCL_GATHER: case GOCCL_GATHER_V: want = me ? -1 : 10 * (j / 4) + j % 4; break;
		case GOCCL_SCATTER: case GOCCL_SCATTER_V: want = j < 4 ? 4 * me + j : -1; break;
		case GOCCL_ALL_TO_ALL: case GOCCL_ALL_TO_ALL_V: want = 10 * (j / 4) + 4 * me + j % 4; break;
		case GOCCL_RECV: want = j; break;
		case GOCCL_SEND_RECV: want = 10 * !me + j; break;
		default: want = -1;
		}
		if (dst[j] != want)
			return 0;
	}
	return 1;
}

// spoil puts garbage into fields.
static void spoil(goccl_args *a, int fields, int nth) {
	void *nowhere[] = { (void *)0x123456789000, NULL, (void *)7, (void *)(intptr_t)-4096, (void *)0xc000000000 }; // the last is Go's own
	void *p = nowhere[nth % 5];
	if (fields & TYPE) a->type = nth % 2 ? -5 : 99;
	if (fields & OP) a->op = nth % 2 ? -1 : 12345;
	if (fields & ROOT) a->root = nth % 2 ? -7 : 1 << 30;
	if (fields & TO) a->to = nth % 2 ? -7 : 1 << 30;
	if (fields & IN_PLACE) a->flags |= GOCCL_IN_PLACE;
	if (fields & DST) a->dst = p, a->dst_n = nth % 2 ? UINT64_MAX : 8;
	if (fields & SRC) a->src = p, a->src_n = nth % 2 ? UINT64_MAX : 8;
	if (fields & DST_COUNTS) a->dst_counts = p;
	if (fields & SRC_COUNTS) a->src_counts = p;
	if (fields & FACTOR) a->factor = -1 / 0.0;
	a->flags |= 64; // which is no flag
}

static void on_done(void *ctx, const goccl_error *e) { __atomic_store_n((int *)ctx, e ? e->code : 100, __ATOMIC_SEQ_CST); }

static int queued(goccl_comm c, goccl_args *a) {
	int ended = 0;
	goccl_call(c, a, 1, 0, on_done, &ended, NULL);
	memset(a, 0x77, sizeof *a); // it is not used after the return
	while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		usleep(100);
	return ended == 100 ? 0 : ended;
}

int main(void) {
	goccl_error err;
	goccl_comm c;
	goccl_options o = { .size = sizeof o, .timeout = 60000000000 };
	CHECK(goccl_join(&o, &c, &err) == 0);
	me = goccl_rank(c);
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		what = kinds[i].name;
		if (kinds[i].kind == GOCCL_SEND || kinds[i].kind == GOCCL_RECV)
			continue; // below, with each other
		int ignored = ALL & ~(me && kinds[i].other ? kinds[i].other : kinds[i].has);
		for (int nth = 0; nth < 10; nth++) {
			for (int one = 1; one <= ALL + 1; one *= 2) { // each field, and all of them
				int fields = one <= ALL ? one & ignored : ignored;
				goccl_args a = valid(i);
				spoil(&a, fields, nth + me);
				err.code = 0;
				CHECK((nth & 1 ? queued(c, &a) : goccl_call(c, &a, 1, 0, NULL, NULL, &err)) == 0);
				CHECK(right(i));
			}
			// As one call of a group.
			goccl_args group[2] = { valid(i), { .kind = GOCCL_BARRIER } };
			spoil(&group[0], ignored, nth);
			spoil(&group[1], ALL, nth);
			CHECK(goccl_call(c, group, 2, 0, NULL, NULL, &err) == 0 && right(i));
			if (wrong)
				return wrong;
		}
	}
	int i = 0;
	while (kinds[i].kind != (me ? GOCCL_RECV : GOCCL_SEND))
		i++;
	what = kinds[i].name;
	for (int nth = 0; nth < 10; nth++) {
		goccl_args a = valid(i), m = a;
		spoil(&a, ALL & ~kinds[i].has, nth);
		spoil(&m, ALL & ~kinds[i].has, nth);
		CHECK(goccl_call(c, &a, 1, 0, NULL, NULL, &err) == 0 && right(i));
		CHECK(goccl_message(c, &m, 1, 0, NULL, NULL, NULL, &err) == 0 && right(i));
	}
	CHECK(goccl_close(c, &err) == 0);
	return wrong;
}
