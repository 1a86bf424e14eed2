// A library before MPI's own (PMPI). It counts what types are made and freed and says so in MPI_Finalize, refuses to
// make one of eight where REFUSE is set, grants no more than MPI_THREAD_SERIALIZED where SERIALIZED is, says which hints it is
// given, and when its own end function runs.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int made, freed, refused;

static int refuse(void) {
	static unsigned state = 1;
	if (!getenv("REFUSE")) return 0;
	state = state * 1664525 + 1013904223; // the same numbers on every run
	if (state >> 29) return 0;
	refused++;
	return 1;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *granted) {
	if (!getenv("SERIALIZED")) return PMPI_Init_thread(argc, argv, wanted, granted);
	int rc = PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, granted);
	if (*granted > MPI_THREAD_SERIALIZED) *granted = MPI_THREAD_SERIALIZED;
	printf("tool: %s\n", *granted == MPI_THREAD_SERIALIZED ? "serialized" : "less");
	fflush(stdout);
	return rc;
}

int MPI_Type_contiguous(int n, MPI_Datatype of, MPI_Datatype *type) {
	if (refuse()) return MPI_ERR_OTHER;
	made++;
	return PMPI_Type_contiguous(n, of, type);
}

int MPI_Type_create_struct(int n, const int *counts, const MPI_Aint *at, const MPI_Datatype *of, MPI_Datatype *type) {
	if (refuse()) return MPI_ERR_OTHER;
	made++;
	return PMPI_Type_create_struct(n, counts, at, of, type);
}

int MPI_Type_commit(MPI_Datatype *type) { return refuse() ? MPI_ERR_OTHER : PMPI_Type_commit(type); }

int MPI_Type_free(MPI_Datatype *type) {
	freed++;
	return PMPI_Type_free(type);
}

int MPI_Info_set(MPI_Info info, const char *name, const char *value) {
	printf("tool: hint %s=%s\n", name, value);
	fflush(stdout);
	return PMPI_Info_set(info, name, value);
}

int MPI_Finalize(void) {
	printf("tool: %s made, %d types left, %s refused\n", made ? "some" : "none", made - freed, refused ? "some" : "none");
	fflush(stdout);
	return PMPI_Finalize();
}

__attribute__((destructor)) static void end(void) {
	printf("tool: ended\n");
	fflush(stdout);
}
