// overhead.c, with -DSTANDARD=1 for the standard interface: the nanoseconds of MPI_Allreduce of 8 bytes on MPI_COMM_SELF, run after run: what the
// scene "overhead" of package mpi's tests does in Go.
#if STANDARD
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv) {
	enum { calls = 200000 };
	double src = 0, dst;
	int level;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	for (int run = 0; run < 5; run++) {
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int i = 0; i < calls; i++) MPI_Allreduce(&src, &dst, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%.1f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / calls);
	}
	return MPI_Finalize();
}
