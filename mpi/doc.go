// Package mpi is MPI for Go: typed calls on slices, over whatever MPI library the job runs under.
//
// The build tag mpi and cgo compile it in. Building needs no MPI, and the program links none:
// [Init] opens a library of the family whose launcher started the process. These are MPICH and its
// descendants, Open MPI, and any library with the standard interface of MPI 5, so one binary runs
// under all of them. GOCCL_MPI_LIB names the library's file if Init should not choose. Without the
// tag the package is a stub for jobs with one rank: it does all that one rank can do alone, and
// Init fails if a launcher has started more.
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
// Lengths come from the slices: in Gather, AllGather and the like len(src) is the length of each
// rank's block. Counts by rank, where a function takes them, are the same on all ranks, and the
// blocks lie one after the other. A call works in place if dst and src are one slice, or if one of
// them is this rank's block of the other, where MPI allows that. Vectors may have more than 2^31-1
// elements. Colors and keys are any ints. Tags go up to the library's limit, which is at least
// [MaxTag].
//
// # Contexts
//
// A call whose context cannot end (context.Background) is MPI's blocking one: the fastest, and it
// keeps a thread busy until it returns. A collective whose context can end is the same blocking
// one, on a goroutine of its own, so ranks with a deadline and ranks without one can meet in a
// call. A Send, Recv or SendRecv whose context can end is a non-blocking one that is tested again
// and again. To wait in a collective without keeping a thread busy, begin the non-blocking form on
// all ranks (Ibarrier and the like) and Wait with a context that can end. MPI does not match that
// form with the other: all ranks of a communicator begin a collective with the same function.
//
// If the context ends first, a Recv is cancelled and the communicator stays usable. MPI cannot
// cancel any other call. Such a call returns [ErrAbandoned], its memory stays in use, and later
// calls on this communicator return the same error. A collective that was abandoned keeps its
// thread until the other ranks have come.
//
// # Threads
//
// Goroutines move between threads, so Init asks for MPI_THREAD_MULTIPLE. If the library offers only
// MPI_THREAD_SERIALIZED, calls take turns, and no call waits for another rank inside MPI: Split,
// SplitNode and Free, which MPI has only in a blocking form, enter MPI when all ranks have arrived.
// If it offers less, Init fails. As in MPI, only one goroutine at a time may call the collectives
// of a communicator.
//
// If Go has one processor, because the launcher has bound the process to a core, Init sets GOMAXPROCS to 2, unless the
// environment sets it. Otherwise Go's scheduler would disturb each call that waits inside MPI. For the same reason a
// blocking call of 1,024 elements or more starts with runtime.Gosched if the last one was 7 ms ago or more.
//
// # Files
//
// [OpenFile] gives a [File] that all ranks of a communicator have open: MPI-IO. ReadAt and WriteAt
// are one rank's own; ReadAtAll and WriteAtAll are collective, and the library moves the bytes of
// all ranks as one. Offsets are in bytes, and elements lie in the file as in memory. Hints such as
// [StripingFactor] go to the library and the file system. Ranks that make different collective
// calls on a file get [ErrNotSame], with two of the names, and no call is made. A file is closed
// before Finalize.
//
// # Names
//
//	MPI                      mpi4py (buffers)       here
//	Init_thread              on import              Init, Use
//	Initialized, Finalized   Is_initialized, ..     Initialized, Finalized
//	Query_thread             Query_thread           ThreadLevel
//	Finalize, Abort          Finalize, Abort        Finalize, Comm.Abort
//	Get_library_version      Get_library_version    LibraryVersion, Version
//	Get_processor_name       Get_processor_name     ProcessorName
//	Wtime                    Wtime                  Wtime
//	COMM_WORLD, COMM_SELF    COMM_WORLD, ..SELF     World, Self
//	Comm_rank, Comm_size     Get_rank, Get_size     Comm.Rank, Comm.Size
//	Comm_split, Comm_dup     Split, Dup             Comm.Split, Comm.Dup
//	Comm_split_type          Split_type             Comm.SplitNode
//	Comm_free                Free                   Comm.Free
//	a handle                 handle                 Comm.Native
//	DOUBLE, Type_size        DOUBLE, Get_size       TypeOf, Type.Size
//	Send, Recv               Send, Recv             Send, Recv
//	Sendrecv                 Sendrecv               SendRecv
//	Probe, Iprobe            Probe, Iprobe          Probe, Iprobe
//	Get_count                Status.Get_count       Status.Count
//	Barrier                  Barrier                Barrier
//	Bcast                    Bcast                  Bcast
//	Reduce, Allreduce        Reduce, Allreduce      Reduce, AllReduce
//	MAXLOC, MINLOC           MAXLOC, MINLOC         MaxLoc, MinLoc
//	Scan, Exscan             Scan, Exscan           Scan, Exscan
//	Reduce_scatter_block     Reduce_scatter_block   ReduceScatter
//	Reduce_scatter           Reduce_scatter         ReduceScatterV
//	Gather, Gatherv          Gather, Gatherv        Gather, GatherV
//	Scatter, Scatterv        Scatter, Scatterv      Scatter, ScatterV
//	Allgather, Allgatherv    Allgather(v)           AllGather, AllGatherV
//	Alltoall, Alltoallv      Alltoall(v)            AllToAll, AllToAllV
//	Isend, Irecv             Isend, Irecv           Isend, Irecv
//	Ibarrier, Ibcast         Ibarrier, Ibcast       Ibarrier, Ibcast
//	Ireduce, Iallreduce      Ireduce, Iallreduce    Ireduce, Iallreduce
//	Iscan, Iexscan           Iscan, Iexscan         Iscan, Iexscan
//	Ireduce_scatter_block    Ireduce_scatter_block  Ireducescatter
//	Igather, Iscatter        Igather, Iscatter      Igather, Iscatter
//	Iallgather, Ialltoall    Iallgather, Ialltoall  Iallgather, Ialltoall
//	the other I..            the other I..          Comm.Start
//	Wait, Test               Request.Wait, Test     Request.Wait, Request.Test
//	IN_PLACE                 IN_PLACE               one slice given twice
//	File_open, Info_set      File.Open, Info        OpenFile, Hint
//	striping_factor, .._unit striping_factor, ..    StripingFactor, StripingUnit
//	cb_nodes                 cb_nodes               CollectiveNodes
//	File_close               File.Close             File.Close
//	File_get_size            File.Get_size          File.Size
//	File_set_size            File.Set_size          File.SetSize
//	File_sync                File.Sync              File.Sync
//	File_read_at(_all)       File.Read_at(_all)     ReadAt, ReadAtAll
//	File_write_at(_all)      File.Write_at(_all)    WriteAt, WriteAtAll
//	-                        allgather, of objects  Comm.AllGather, of bytes
//	-                        -                      Comm.Do
//	-                        -                      Load, LibraryPath, File.Name
//	-                        -                      Abandoned, Request.Abandon
//
// # Errors
//
// Every communicator returns its errors, as an [*Error] with the library's own text and a [Class]:
//
//	errors.Is(err, mpi.ErrTruncate)
//
// After an error from MPI itself the state of a communicator is undefined, says the standard. A
// communicator stays as it was if this package refuses an argument, or a receive is cancelled. A
// rank that dies ends the job, as its launcher decides.
package mpi
