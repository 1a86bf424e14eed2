// Package mpi is MPI for Go: typed calls on slices over whatever MPI library the job runs under.
//
// It is compiled in by the build tag mpi, and by cgo. No MPI is needed to build, and none is linked:
// [Init] opens the library of the family whose launcher started the process (MPICH and what
// descends from it, Open MPI, or any library with the standard interface of MPI 5), so that one
// binary runs under all of them. GOCCL_MPI_LIB names the library's file where Init should not
// choose. Without the tag the package is a stub for jobs of one rank: it can do all that one rank
// can do alone, and Init fails where a launcher has started more.
//
//	if err := mpi.Init(); err != nil {
//		log.Fatal(err)
//	}
//	defer mpi.Finalize()
//	sum := make([]float64, 1)
//	err := mpi.AllReduce(ctx, mpi.World(), sum, []float64{x}, mpi.Sum)
//
// # Calls
//
// Lengths come from the slices: len(src) of each rank's block in Gather, AllGather, and the like.
// Counts by rank, where a function has them, are the same on all ranks, and the blocks lie one after
// the other. In place, where MPI has it, is written as the same memory: dst and src are one slice, or
// one is this rank's block of the other. Vectors of more than 2^31-1 elements work. Colors and
// keys are any ints; tags go up to the library's limit, at least [MaxTag].
//
// # Contexts
//
// A call whose context can end is a non-blocking one, tested again and again; a context that cannot
// end (context.Background) makes MPI's blocking call, which is faster and burns a thread for as long
// as it takes. MPI does not match the two: in a collective either all ranks have a context that can
// end, or none has. If the context ends first, a Recv is cancelled and the communicator stays usable. Any
// other call cannot be taken back in MPI: the error is [ErrAbandoned], the memory stays pinned, and
// later calls on this communicator return the same error.
//
// # Threads
//
// Goroutines move between threads, so Init asks for MPI_THREAD_MULTIPLE. Where the library offers
// MPI_THREAD_SERIALIZED only, calls take turns and none waits for another rank inside MPI: Split, SplitNode and Free,
// which MPI has in a blocking form only, go in when all ranks have come. Where it offers less, Init
// fails. As in MPI, the collectives of one communicator are called by one goroutine at a time. Where Go has
// one processor, since the launcher has bound the process to a core, Init sets GOMAXPROCS to 2, unless the
// environment sets it: otherwise Go's scheduler disturbs each call that waits inside MPI. For the same reason a
// blocking call of 1,024 elements and more begins with runtime.Gosched where the last was 7 ms ago.
//
// # Errors
//
// Every communicator returns its errors, as an [*Error] with the library's own text and a [Class]:
//
//	errors.Is(err, mpi.ErrTruncate)
//
// After an error of MPI's own a communicator is in no known state, says the standard; arguments that
// this package refuses, and cancelled receives, leave it as it was. A rank that dies ends the job, as
// its launcher decides.
package mpi
