// MPI without an MPI: the functions and the constants of its three binary interfaces, so that one
// program, built where there is no MPI, runs with whichever library it opens.
//
// MPICH's family (MPICH, Intel MPI, Cray MPICH, MVAPICH) has int handles, Open MPI the addresses of
// objects it exports, and the standard interface of MPI 5 small numbers as pointers. Everything here
// is written once, over the types GMPI_COMM, GMPI_TYPE, GMPI_OP, GMPI_INFO, GMPI_ERRHANDLER,
// GMPI_REQUEST, GMPI_STATUS, GMPI_COUNT, GMPI_AINT, GMPI_OFFSET, GMPI_FILE, GMPI_USER and GMPI_HANDLER, which the includer
// defines, and may define anew, where it expands a list: test/mpi checks each line against the real headers.
#ifndef GMPI_H
#define GMPI_H

// F(required, return, name, parameters)
#define GMPI_FUNCTIONS(F) \
	F(1, int, Init_thread, (int *, char ***, int, int *)) \
	F(1, int, Initialized, (int *)) \
	F(1, int, Finalized, (int *)) \
	F(1, int, Finalize, (void)) \
	F(1, int, Query_thread, (int *)) \
	F(1, int, Abort, (GMPI_COMM, int)) \
	F(1, int, Get_library_version, (char *, int *)) \
	F(1, int, Get_version, (int *, int *)) \
	F(1, int, Get_processor_name, (char *, int *)) \
	F(1, int, Error_string, (int, char *, int *)) \
	F(1, int, Error_class, (int, int *)) \
	F(1, double, Wtime, (void)) \
	F(1, int, Comm_rank, (GMPI_COMM, int *)) \
	F(1, int, Comm_size, (GMPI_COMM, int *)) \
	F(1, int, Comm_dup, (GMPI_COMM, GMPI_COMM *)) \
	F(1, int, Comm_split, (GMPI_COMM, int, int, GMPI_COMM *)) \
	F(1, int, Comm_split_type, (GMPI_COMM, int, int, GMPI_INFO, GMPI_COMM *)) \
	F(1, int, Comm_idup, (GMPI_COMM, GMPI_COMM *, GMPI_REQUEST *)) \
	F(1, int, Comm_free, (GMPI_COMM *)) \
	F(1, int, Comm_get_attr, (GMPI_COMM, int, void *, int *)) \
	F(1, int, Type_contiguous, (int, GMPI_TYPE, GMPI_TYPE *)) \
	F(1, int, Type_create_struct, (int, const int *, const GMPI_AINT *, const GMPI_TYPE *, GMPI_TYPE *)) \
	F(1, int, Type_commit, (GMPI_TYPE *)) \
	F(1, int, Type_free, (GMPI_TYPE *)) \
	F(1, int, Comm_create_errhandler, (GMPI_HANDLER *, GMPI_ERRHANDLER *)) \
	F(1, int, Comm_set_errhandler, (GMPI_COMM, GMPI_ERRHANDLER)) \
	F(1, int, Op_create, (GMPI_USER *, int, GMPI_OP *)) \
	F(1, int, Wait, (GMPI_REQUEST *, GMPI_STATUS *)) \
	F(1, int, Test, (GMPI_REQUEST *, int *, GMPI_STATUS *)) \
	F(1, int, Cancel, (GMPI_REQUEST *)) \
	F(1, int, Test_cancelled, (const GMPI_STATUS *, int *)) \
	F(1, int, Get_count, (const GMPI_STATUS *, GMPI_TYPE, int *)) \
	F(0, int, Get_elements_x, (const GMPI_STATUS *, GMPI_TYPE, GMPI_COUNT *)) \
	F(0, int, Get_count_c, (const GMPI_STATUS *, GMPI_TYPE, GMPI_COUNT *)) \
	F(1, int, Probe, (int, int, GMPI_COMM, GMPI_STATUS *)) \
	F(1, int, Iprobe, (int, int, GMPI_COMM, int *, GMPI_STATUS *)) \
	F(1, int, Barrier, (GMPI_COMM)) \
	F(1, int, Ibarrier, (GMPI_COMM, GMPI_REQUEST *)) \
	F(1, int, Recv, (void *, int, GMPI_TYPE, int, int, GMPI_COMM, GMPI_STATUS *)) \
	F(1, int, Irecv, (void *, int, GMPI_TYPE, int, int, GMPI_COMM, GMPI_REQUEST *)) \
	F(0, int, Recv_c, (void *, GMPI_COUNT, GMPI_TYPE, int, int, GMPI_COMM, GMPI_STATUS *)) \
	F(0, int, Irecv_c, (void *, GMPI_COUNT, GMPI_TYPE, int, int, GMPI_COMM, GMPI_REQUEST *)) \
	F(1, int, Sendrecv, (const void *, int, GMPI_TYPE, int, int, void *, int, GMPI_TYPE, int, int, GMPI_COMM, GMPI_STATUS *)) \
	F(0, int, Sendrecv_c, (const void *, GMPI_COUNT, GMPI_TYPE, int, int, void *, GMPI_COUNT, GMPI_TYPE, int, int, GMPI_COMM, GMPI_STATUS *))

// Functions of files and of hints: F(return, name, parameters). MPICH can be built without them, so a library may lack them.
// A file is a pointer in all families, also where other handles are ints.
#define GMPI_FILE_FUNCTIONS(F) \
	F(int, File_open, (GMPI_COMM, const char *, int, GMPI_INFO, GMPI_FILE *)) \
	F(int, File_close, (GMPI_FILE *)) \
	F(int, File_get_size, (GMPI_FILE, GMPI_OFFSET *)) \
	F(int, File_set_size, (GMPI_FILE, GMPI_OFFSET)) \
	F(int, File_sync, (GMPI_FILE)) \
	F(int, File_read_at, (GMPI_FILE, GMPI_OFFSET, void *, int, GMPI_TYPE, GMPI_STATUS *)) \
	F(int, File_read_at_all, (GMPI_FILE, GMPI_OFFSET, void *, int, GMPI_TYPE, GMPI_STATUS *)) \
	F(int, File_write_at, (GMPI_FILE, GMPI_OFFSET, const void *, int, GMPI_TYPE, GMPI_STATUS *)) \
	F(int, File_write_at_all, (GMPI_FILE, GMPI_OFFSET, const void *, int, GMPI_TYPE, GMPI_STATUS *)) \
	F(int, Info_create, (GMPI_INFO *)) \
	F(int, Info_set, (GMPI_INFO, const char *, const char *)) \
	F(int, Info_free, (GMPI_INFO *))

// Functions in four forms: blocking or not, with counts of int or (MPI 4) of MPI_Count.
// G(name, name after MPI_I, parameters), where parameters(N, V, D, , more) takes the type of a
// count, of counts and of displacements by rank, and what the non-blocking forms have more.
#define GMPI_FORMS(G) \
	G(Send, send, GMPI_SEND) \
	G(Bcast, bcast, GMPI_BCAST) \
	G(Reduce, reduce, GMPI_REDUCE) \
	G(Allreduce, allreduce, GMPI_ALLREDUCE) \
	G(Scan, scan, GMPI_ALLREDUCE) \
	G(Exscan, exscan, GMPI_ALLREDUCE) \
	G(Reduce_scatter_block, reduce_scatter_block, GMPI_ALLREDUCE) \
	G(Reduce_scatter, reduce_scatter, GMPI_REDUCE_SCATTER) \
	G(Gather, gather, GMPI_GATHER) \
	G(Scatter, scatter, GMPI_GATHER) \
	G(Allgather, allgather, GMPI_ALLGATHER) \
	G(Alltoall, alltoall, GMPI_ALLGATHER) \
	G(Gatherv, gatherv, GMPI_GATHERV) \
	G(Scatterv, scatterv, GMPI_SCATTERV) \
	G(Allgatherv, allgatherv, GMPI_ALLGATHERV) \
	G(Alltoallv, alltoallv, GMPI_ALLTOALLV)

#define GMPI_SEND(N, V, D, ...) (const void *, N, GMPI_TYPE, int, int, GMPI_COMM __VA_ARGS__)
#define GMPI_BCAST(N, V, D, ...) (void *, N, GMPI_TYPE, int, GMPI_COMM __VA_ARGS__)
#define GMPI_REDUCE(N, V, D, ...) (const void *, void *, N, GMPI_TYPE, GMPI_OP, int, GMPI_COMM __VA_ARGS__)
#define GMPI_ALLREDUCE(N, V, D, ...) (const void *, void *, N, GMPI_TYPE, GMPI_OP, GMPI_COMM __VA_ARGS__)
#define GMPI_REDUCE_SCATTER(N, V, D, ...) (const void *, void *, V, GMPI_TYPE, GMPI_OP, GMPI_COMM __VA_ARGS__)
#define GMPI_GATHER(N, V, D, ...) (const void *, N, GMPI_TYPE, void *, N, GMPI_TYPE, int, GMPI_COMM __VA_ARGS__)
#define GMPI_ALLGATHER(N, V, D, ...) (const void *, N, GMPI_TYPE, void *, N, GMPI_TYPE, GMPI_COMM __VA_ARGS__)
#define GMPI_GATHERV(N, V, D, ...) (const void *, N, GMPI_TYPE, void *, V, D, GMPI_TYPE, int, GMPI_COMM __VA_ARGS__)
#define GMPI_SCATTERV(N, V, D, ...) (const void *, V, D, GMPI_TYPE, void *, N, GMPI_TYPE, int, GMPI_COMM __VA_ARGS__)
#define GMPI_ALLGATHERV(N, V, D, ...) (const void *, N, GMPI_TYPE, void *, V, D, GMPI_TYPE, GMPI_COMM __VA_ARGS__)
#define GMPI_ALLTOALLV(N, V, D, ...) (const void *, V, D, GMPI_TYPE, void *, V, D, GMPI_TYPE, GMPI_COMM __VA_ARGS__)

// H(field, name, MPICH, Open MPI's symbol, standard)
#define GMPI_HANDLES(H) \
	H(world, COMM_WORLD, 0x44000000, ompi_mpi_comm_world, 0x101) \
	H(self, COMM_SELF, 0x44000001, ompi_mpi_comm_self, 0x102) \
	H(comm_null, COMM_NULL, 0x04000000, ompi_mpi_comm_null, 0x100) \
	H(int8, INT8_T, 0x4c000137, ompi_mpi_int8_t, 0x240) \
	H(uint8, UINT8_T, 0x4c00013b, ompi_mpi_uint8_t, 0x241) \
	H(int16, INT16_T, 0x4c000238, ompi_mpi_int16_t, 0x248) \
	H(uint16, UINT16_T, 0x4c00023c, ompi_mpi_uint16_t, 0x249) \
	H(int32, INT32_T, 0x4c000439, ompi_mpi_int32_t, 0x250) \
	H(uint32, UINT32_T, 0x4c00043d, ompi_mpi_uint32_t, 0x251) \
	H(int64, INT64_T, 0x4c00083a, ompi_mpi_int64_t, 0x258) \
	H(uint64, UINT64_T, 0x4c00083e, ompi_mpi_uint64_t, 0x259) \
	H(float32, FLOAT, 0x4c00040a, ompi_mpi_float, 0x210) \
	H(float64, DOUBLE, 0x4c00080b, ompi_mpi_double, 0x214) \
	H(sum, SUM, 0x58000003, ompi_mpi_op_sum, 0x21) \
	H(prod, PROD, 0x58000004, ompi_mpi_op_prod, 0x24) \
	H(min, MIN, 0x58000002, ompi_mpi_op_min, 0x22) \
	H(max, MAX, 0x58000001, ompi_mpi_op_max, 0x23) \
	H(info_null, INFO_NULL, 0x1c000000, ompi_mpi_info_null, 0x130) \
	H(request_null, REQUEST_NULL, 0x2c000000, ompi_request_null, 0x180)

// N(field, name, MPICH, Open MPI, standard)
#define GMPI_NUMBERS(N) \
	N(in_place, IN_PLACE, -1, 1, 1) \
	N(any_source, ANY_SOURCE, -2, -1, -1) \
	N(any_tag, ANY_TAG, -1, -1, -2) \
	N(proc_null, PROC_NULL, -1, -2, -3) \
	N(undefined, UNDEFINED, -32766, -32766, -32766) \
	N(shared, COMM_TYPE_SHARED, 1, 0, 221) \
	N(tag_ub, TAG_UB, 0x64400001, 0, 501) \
	N(single, THREAD_SINGLE, 0, 0, 0) \
	N(funneled, THREAD_FUNNELED, 1, 1, 1024) \
	N(serialized, THREAD_SERIALIZED, 2, 2, 2048) \
	N(multiple, THREAD_MULTIPLE, 3, 3, 4096) \
	N(err_buffer, ERR_BUFFER, 1, 1, 1) \
	N(err_count, ERR_COUNT, 2, 2, 2) \
	N(err_type, ERR_TYPE, 3, 3, 3) \
	N(err_tag, ERR_TAG, 4, 4, 4) \
	N(err_comm, ERR_COMM, 5, 5, 5) \
	N(err_rank, ERR_RANK, 6, 6, 6) \
	N(err_request, ERR_REQUEST, 19, 7, 7) \
	N(err_root, ERR_ROOT, 7, 8, 8) \
	N(err_op, ERR_OP, 9, 10, 10) \
	N(err_arg, ERR_ARG, 12, 13, 13) \
	N(err_truncate, ERR_TRUNCATE, 14, 15, 15) \
	N(err_no_mem, ERR_NO_MEM, 34, 39, 39) \
	N(err_file, ERR_FILE, 27, 30, 30) \
	N(err_amode, ERR_AMODE, 21, 21, 21) \
	N(err_not_same, ERR_NOT_SAME, 35, 40, 40) \
	N(err_no_such_file, ERR_NO_SUCH_FILE, 37, 42, 42) \
	N(err_file_exists, ERR_FILE_EXISTS, 25, 28, 28) \
	N(err_bad_file, ERR_BAD_FILE, 22, 23, 23) \
	N(err_access, ERR_ACCESS, 20, 20, 20) \
	N(err_no_space, ERR_NO_SPACE, 36, 41, 41) \
	N(err_quota, ERR_QUOTA, 39, 44, 44) \
	N(err_read_only, ERR_READ_ONLY, 40, 45, 45) \
	N(err_file_in_use, ERR_FILE_IN_USE, 26, 29, 29) \
	N(err_io, ERR_IO, 32, 35, 35) \
	N(err_info, ERR_INFO, 28, 34, 34) \
	N(err_info_key, ERR_INFO_KEY, 29, 31, 31) \
	N(err_info_value, ERR_INFO_VALUE, 30, 33, 33) \
	N(err_unsupported, ERR_UNSUPPORTED_OPERATION, 44, 52, 55) \
	N(mode_read, MODE_RDONLY, 2, 2, 16) \
	N(mode_write, MODE_WRONLY, 4, 4, 256) \
	N(mode_both, MODE_RDWR, 8, 8, 32) \
	N(mode_create, MODE_CREATE, 1, 1, 2) \
	N(mode_excl, MODE_EXCL, 64, 64, 8) \
	N(mode_delete, MODE_DELETE_ON_CLOSE, 16, 16, 4) \
	N(mode_unique, MODE_UNIQUE_OPEN, 32, 32, 128)

// O(field, member, MPICH, Open MPI, standard): where a status has it
#define GMPI_OFFSETS(O) \
	O(at_source, MPI_SOURCE, 8, 0, 0) \
	O(at_tag, MPI_TAG, 12, 4, 4) \
	O(at_error, MPI_ERROR, 16, 8, 8)

// Room for what the libraries write: no family asks for more.
#define GMPI_MAX_STATUS 64
#define GMPI_MAX_ERROR_STRING 512
#define GMPI_MAX_PROCESSOR_NAME 256
#define GMPI_MAX_LIBRARY_VERSION_STRING 8192

#endif
