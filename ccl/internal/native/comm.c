//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#include <stdio.h>
#include <unistd.h>

#define FAIL(call, result) gcclFail(e->ccl, e->comm, &e->fault, call, result)

static int orUndefined(int hint) { return hint ? hint : GCCL_UNDEF_INT; }

// config is for a library of that version, which takes no fields for granted that are newer than the configuration says it is.
static struct gccl_config config(const gccl_hints *h, int version) {
	int old = version < GCCL_CONFIG_VERSION, new = h->launchOrder; // only where it is asked for: nothing else needs the longer one
	if (new)
		version = GCCL_CONFIG_NEW_VERSION;
	else if (!old)
		version = GCCL_CONFIG_VERSION;
	else if (version < GCCL_CONFIG_OLD_VERSION)
		version = GCCL_CONFIG_OLD_VERSION;
	return (struct gccl_config){
		.size = new ? sizeof(struct gccl_config) : old ? GCCL_CONFIG_OLD_SIZE : GCCL_CONFIG_SIZE, .magic = GCCL_CONFIG_MAGIC, .version = version,
		.blocking = 1, .cgaClusterSize = GCCL_UNDEF_INT,
		.minCTAs = orUndefined(h->minCTAs), .maxCTAs = orUndefined(h->maxCTAs), .netName = h->netName,
		.splitShare = GCCL_UNDEF_INT, .trafficClass = orUndefined(h->trafficClass), .commName = h->commName,
		.collnetEnable = GCCL_UNDEF_INT, .CTAPolicy = orUndefined(h->CTAPolicy),
		.shrinkShare = GCCL_UNDEF_INT, .nvlsCTAs = GCCL_UNDEF_INT, .nChannelsPerNetPeer = GCCL_UNDEF_INT,
		.nvlinkCentricSched = GCCL_UNDEF_INT, .graphUsageMode = GCCL_UNDEF_INT, .numRmaCtx = GCCL_UNDEF_INT,
		.maxP2pPeers = GCCL_UNDEF_INT, .graphStreamOrdering = GCCL_UNDEF_INT, .launchOrderImplicit = orUndefined(h->launchOrder),
		.numRmaSig = GCCL_UNDEF_INT, .rmaEagerInit = GCCL_UNDEF_INT, .hostCftMode = GCCL_UNDEF_INT,
	};
}

// settled waits for a communicator that does not block although it was told to: NCCL_COMM_BLOCKING, of the environment or a
// file of NCCL's, has the last word (envConfigOverride, src/init.cc). It is no use then: each of its calls would make a
// thread.
static int settled(gccl_end *e, const char *call, int r) {
	if (r != GCCL_IN_PROGRESS)
		return gcclFail(e->ccl, NULL, &e->fault, call, r);
	while (e->ccl->CommGetAsyncError(e->comm, &r) == GCCL_SUCCESS && r == GCCL_IN_PROGRESS)
		usleep(1000);
	e->fault = (gccl_fault){ .result = GCCL_INVALID_USAGE,
		.text = "NCCL_COMM_BLOCKING=0 is set, in the environment or in nccl.conf, and makes a thread for each call: unset it" };
	snprintf(e->fault.call, sizeof e->fault.call, "nccl%s", call);
	return GCCL_INVALID_USAGE;
}

// The communicator is that of the current device, so the two calls are one for Go, which may move
// the goroutine to another thread between two.
int gcclInit(gccl_end *e, g_uid *ids, int n, int version) {
	int r = gcclOn(e);
	if (r)
		return r;
	struct gccl_config c = config(&e->hints, version);
	if (n > 1)
		return settled(e, "CommInitRankScalable", e->ccl->CommInitRankScalable(&e->comm, e->size, e->rank, n, ids, &c));
	if (version)
		r = e->ccl->CommInitRankConfig(&e->comm, e->size, *ids, e->rank, &c);
	else
		r = e->ccl->CommInitRank(&e->comm, e->size, *ids, e->rank);
	return settled(e, "CommInitRank", r);
}

int gcclShrink(gccl_end *parent, gccl_end *e, int version, int *lost, int n) {
	int r = parent->comm ? gcclOn(e) : FAIL("CommShrink", GCCL_INVALID_ARGUMENT);
	if (r)
		return r;
	struct gccl_config c = config(&e->hints, version);
	return settled(e, "CommShrink", parent->ccl->CommShrink(parent->comm, lost, n, &e->comm, &c, 0));
}

int gcclAsync(gccl_end *e) {
	int state = GCCL_SUCCESS, r = e->ccl->CommGetAsyncError(e->comm, &state);
	return FAIL("CommGetAsyncError", r ? r : state);
}

// What ends a communicator sets the device as well: it selects the thread's former one again in the end, which makes a
// context on device 0 where the thread had none.
#define ENDS(name) \
	int r = gcclOn(e); \
	return r ? r : gcclFail(e->ccl, NULL, &e->fault, #name, e->ccl->name(e->comm))

int gcclFinalize(gccl_end *e) {
	if (!e->ccl->CommFinalize)
		return 0;
	ENDS(CommFinalize);
}
int gcclDestroy(gccl_end *e) { ENDS(CommDestroy); }
int gcclAbort(gccl_end *e) { ENDS(CommAbort); }

int gcclRevoke(gccl_end *e) {
	int r = e->ccl->CommRevoke ? gcclOn(e) : GCCL_INVALID_USAGE;
	return r ? r : gcclFail(e->ccl, NULL, &e->fault, "CommRevoke", e->ccl->CommRevoke(e->comm, 0));
}
