// A library before MPI's own (PMPI) that says which of the functions below are called after MPI_Finalize, and how many calls of
// them there were before.
#include <mpi.h>
#include <stdio.h>

static int over, before;

static void called(const char *name) {
	if (!over)
		before++;
	else
		fprintf(stderr, "counted: %s after MPI_Finalize\n", name);
}

int MPI_Finalize(void) {
	called("MPI_Finalize");
	int r = PMPI_Finalize();
	over = 1;
	printf("counted: MPI_Finalize after %s\n", before > 1 ? "other calls" : "no call");
	fflush(stdout);
	return r;
}

// A call that is late goes no further: MPI would end the process.
#define CALL(name, params, args) \
	int MPI_##name params { \
		called("MPI_" #name); \
		return over ? MPI_ERR_OTHER : PMPI_##name args; \
	}
CALL(Allreduce, (const void *src, void *dst, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (src, dst, n, t, op, c))
CALL(Allgather, (const void *src, int n, MPI_Datatype t, void *dst, int m, MPI_Datatype u, MPI_Comm c), (src, n, t, dst, m, u, c))
CALL(Iallgather, (const void *src, int n, MPI_Datatype t, void *dst, int m, MPI_Datatype u, MPI_Comm c, MPI_Request *r), (src, n, t, dst, m, u, c, r))
CALL(Barrier, (MPI_Comm c), (c))
CALL(Comm_dup, (MPI_Comm c, MPI_Comm *out), (c, out))
CALL(Comm_free, (MPI_Comm *c), (c))
CALL(Comm_rank, (MPI_Comm c, int *rank), (c, rank))
CALL(Comm_size, (MPI_Comm c, int *size), (c, size))
CALL(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *out), (c, color, key, out))
CALL(Test, (MPI_Request *r, int *flag, MPI_Status *s), (r, flag, s))
CALL(Wait, (MPI_Request *r, MPI_Status *s), (r, s))
CALL(Error_string, (int code, char *text, int *n), (code, text, n))
CALL(Error_class, (int code, int *class), (code, class))
