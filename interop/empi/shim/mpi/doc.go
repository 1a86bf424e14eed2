// Package mpi has the API of github.com/emer/empi/mpi v1.0.22 on top of goccl: programs written for empi run over it
// unchanged, without MPI, once go.mod replaces the one module by the other.
//
// What differs, all of it where empi ends the job, hangs or keeps silent:
//
//   - Errors arrive. A failed call returns an error that says what happened and on which rank, and logs it (LogErrors).
//     Where a function has no error to return, Init and Finalize, a failure ends the process with status 1.
//   - Abort ends the job with status 1, not 0.
//   - A lost rank and calls that do not belong together are noticed, and named.
//   - Reduce and Gather take a nil dest on the ranks that receive nothing.
//   - No tag is needed. Under a launcher (mpirun, srun, bench launch, ...) a process is one of its
//     ranks, and alone it is a
//     job of one. With the tag mpi the ranks find each other over MPI, where that is needed.
//   - Comms may be used by several goroutines, but calls on one wait for each other: a Recv that
//     nothing has been sent for
//     holds up what would send it.
package mpi

//go:generate go run gen.go
