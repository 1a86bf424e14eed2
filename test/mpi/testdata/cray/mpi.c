// A library before MPI's own (PMPI) that does in MPI_Init_thread what Cray MPICH does without its GTL.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
	const char *wanted = getenv("MPICH_GPU_SUPPORT_ENABLED");
	int gtl = dlsym(RTLD_DEFAULT, "gtl_is_here") != NULL;
	if (wanted && atoi(wanted) && !gtl) {
		fprintf(stderr, "MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not linked\n");
		exit(255);
	}
	printf("cray: GPU support %s, GTL %s\n", wanted ? wanted : "not asked for", gtl ? "loaded" : "not loaded");
	fflush(stdout);
	return PMPI_Init_thread(argc, argv, required, provided);
}
