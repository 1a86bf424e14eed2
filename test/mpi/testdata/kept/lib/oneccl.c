// A oneCCL that moves data over MPI, as the real one does with CCL_ATL_TRANSPORT=mpi: it uses what it finds initialised, and does not
// finalise it. It has communicators of all ranks, an all-gather, and an all-reduce of int32.
#include "goneccl.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

struct goneccl_opaque { MPI_Comm comm; };

o_res onecclGetVersion(int *v) { return *v = GONECCL_OLDEST, GONECCL_SUCCESS; }
o_res onecclGetUniqueId(o_uid *id) { return memset(id, 7, sizeof *id), GONECCL_SUCCESS; }
const char *onecclGetErrorString(o_res r) { return r ? "MPI has failed" : "success"; }
const char *onecclGetLastError(o_comm c) { return c ? "MPI has failed" : "MPI is not initialised"; }
o_res onecclSetDevice(uint32_t n) { return n ? GONECCL_INVALID_ARGUMENT : GONECCL_SUCCESS; }

o_res onecclCommInitRank(o_comm *out, size_t size, o_uid id, int rank) {
	int begun = 0;
	(void)size, (void)id, (void)rank;
	if (MPI_Initialized(&begun) || !begun)
		return GONECCL_INTERNAL;
	*out = malloc(sizeof **out);
	return MPI_Comm_dup(MPI_COMM_WORLD, &(*out)->comm) ? GONECCL_INTERNAL : GONECCL_SUCCESS;
}

o_res onecclCommDestroy(o_comm c) {
	int over = 0;
	if (!MPI_Finalized(&over) && !over) // as atl_mpi::finalize asks
		MPI_Comm_free(&c->comm);
	free(c);
	return GONECCL_SUCCESS;
}

o_res onecclAllReduce(void *src, void *dst, size_t n, o_dtype t, o_op op, o_comm c, void *queue) {
	if (t != GONECCL_INT32 || op != GONECCL_SUM || queue)
		return GONECCL_NOT_IMPLEMENTED;
	return MPI_Allreduce(src == dst ? MPI_IN_PLACE : src, dst, n, MPI_INT32_T, MPI_SUM, c->comm) ? GONECCL_INTERNAL : GONECCL_SUCCESS;
}

o_res onecclAllGather(const void *src, void *dst, size_t n, o_dtype t, o_comm c, void *queue) {
	static const int widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
	int bytes = n * widths[t];
	return queue || MPI_Allgather(src, bytes, MPI_BYTE, dst, bytes, MPI_BYTE, c->comm) ? GONECCL_INTERNAL : GONECCL_SUCCESS;
}

#define LACKS(name, ...) \
	o_res oneccl##name(__VA_ARGS__) { return GONECCL_NOT_IMPLEMENTED; }
LACKS(Reduce, const void *a, void *b, size_t n, o_dtype t, o_op op, int r, o_comm c, void *q)
LACKS(Broadcast, const void *a, void *b, size_t n, o_dtype t, int r, o_comm c, void *q)
LACKS(ReduceScatter, const void *a, void *b, size_t n, o_dtype t, o_op op, o_comm c, void *q)
LACKS(AllToAll, const void *a, void *b, size_t n, o_dtype t, o_comm c, void *q)
LACKS(Send, const void *a, size_t n, o_dtype t, int peer, o_comm c, void *q)
LACKS(Recv, void *a, size_t n, o_dtype t, int peer, o_comm c, void *q)
