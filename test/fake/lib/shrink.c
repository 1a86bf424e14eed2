// Communicators of which some ranks are gone: ncclCommRevoke ends what is under way, and ncclCommShrink goes on without them.
#include "ccl.h"

// goccl_fake_shrunk is how many communicators ncclCommShrink has begun.
static atomic_int shrunk;
int goccl_fake_shrunk(void) { return shrunk; }

g_res ncclCommShrink(g_comm c, int *lost, int n, g_comm *out, g_cfg *config, int flags) {
	if (!c || c->magic != ALIVE || n < 1 || n >= c->size)
		return warn("%s : invalid communicator or list of ranks", __func__), GCCL_INVALID_ARGUMENT;
	int injected = knob_fail(__func__);
	if (injected)
		return warn("injected failure of %s", __func__), injected;
	if (flags & GCCL_SHRINK_ABORT)
		c->abort = 1;
	else if (!c->revoked && usable(c, __func__))
		return usable(c, __func__);
	else if (c->pending) // the library waits for it, and it may wait for a rank that is gone
		violation("a communicator was shrunk with operations under way");
	if (c->proxy) // ncclCommEnsureReady asks for it: this rank is refused, and the others wait for it
		return warn("%s : the network has failed", __func__), (int)c->proxy;
	int rank = c->rank, number = c->children++;
	for (int i = 0; i < n; i++) {
		if (lost[i] == c->rank)
			return warn("%s : rank %d excludes itself", __func__, c->rank), GCCL_INVALID_ARGUMENT;
		rank -= lost[i] < c->rank;
	}
	shrunk++;
	g_uid id = child_id(c, number, 0x5351);
	int error = launch_comm(make_comm(c->size - n, &id, rank, c->device, config ? !blocking(config) : c->asynchronous), out);
	return c->asynchronous && error == GCCL_IN_PROGRESS ? 0 : error;
}

// ncclCommRevoke frees nothing: it makes what is under way end, whoever is inside, and then takes its flag back (NCCL 2.28.7). What is
// revoked takes no more calls, can be shrunk, and can be revoked once.
g_res ncclCommRevoke(g_comm c, int flags) {
	if (!c || c->magic != ALIVE || flags)
		return warn("%s : invalid communicator or flags", __func__), GCCL_INVALID_ARGUMENT;
	int injected = knob_fail(__func__);
	if (injected)
		return injected;
	if (!c->made) { // commRevokeAsync synchronizes a stream of comm->sharedRes, which is NULL then
		violation("a communicator was revoked whose start had failed");
		return GCCL_INTERNAL;
	}
	if (atomic_exchange(&c->revoked, 1))
		return warn("%s : the communicator is revoked already", __func__), GCCL_INVALID_USAGE;
	c->abort = 1;
	while (c->pending || c->inside)
		usleep(100);
	c->abort = 0;
	c->async = 0;
	lost_peer(c); // what the proxy has seen of a rank that is gone, before or meanwhile, stays
	return 0;
}
