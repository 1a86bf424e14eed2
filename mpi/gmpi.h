// What the Go code calls: every call of MPI in one struct, so that a call crosses once.
#ifndef GMPI_CALL_H
#define GMPI_CALL_H
#include <stdint.h>

// The order of kinds, types and ops is that of call.go and type.go.
enum {
	GMPI_KIND_BARRIER = 1, GMPI_KIND_BCAST, GMPI_KIND_REDUCE, GMPI_KIND_ALLREDUCE, GMPI_KIND_SCAN,
	GMPI_KIND_REDUCE_SCATTER, GMPI_KIND_REDUCE_SCATTERV, GMPI_KIND_GATHER, GMPI_KIND_GATHERV,
	GMPI_KIND_SCATTER, GMPI_KIND_SCATTERV, GMPI_KIND_ALLGATHER, GMPI_KIND_ALLGATHERV,
	GMPI_KIND_ALLTOALL, GMPI_KIND_ALLTOALLV, GMPI_KIND_SEND, GMPI_KIND_RECV, GMPI_KIND_SENDRECV, GMPI_KIND_EXSCAN,
	GMPI_KIND_DUP, GMPI_KIND_PROBE
};
enum { GMPI_TYPES = 14, GMPI_FLOAT16 = 9, GMPI_BFLOAT16 = 10, GMPI_PLACED = 13, GMPI_OPS = 5, GMPI_FIRST = 4 };
enum { GMPI_FILE_CLASSES = 17 }; // the first class of files, as in error.go
enum { GMPI_MPICH, GMPI_OPENMPI, GMPI_STANDARD };
enum { GMPI_ANY = -1, GMPI_NONE = -2 };     // AnySource and AnyTag; ProcNull
enum { GMPI_TOO_LARGE = -1, GMPI_NO_MEMORY = -2 }; // codes of our own: MPI's are not negative

typedef struct {
	uintptr_t dst, src;
	int64_t n, m;      // elements, as call.go says; m is what SendRecv sends
	uintptr_t dc, sc;  // int64_t[size]: counts by rank
	uintptr_t comm, request;
	int64_t limit;     // counts above it need the forms with MPI_Count
	uintptr_t vectors; // what a started call reads until it is complete: to be freed then
	int32_t kind, type, op, root, to, tag, size, in_place, start;
	int32_t cancelled; // in: it was asked for; out: it was
	int32_t done, source, got_tag; // what came of it
	int64_t got;         // elements; of GMPI_KIND_DUP the communicator
	int32_t code, class; // class as in error.go
	uintptr_t text;      // of an error, a char *: to be freed
} gmpi_call;

enum {
	GMPI_FILE_OPEN, GMPI_FILE_CLOSE, GMPI_FILE_GET_SIZE, GMPI_FILE_SET_SIZE, GMPI_FILE_SYNC,
	GMPI_FILE_READ, GMPI_FILE_READ_ALL, GMPI_FILE_WRITE, GMPI_FILE_WRITE_ALL
};

// One call on a file.
typedef struct {
	gmpi_call call;   // its communicator, and what went wrong
	uintptr_t file;   // the MPI_File, a pointer in all families
	uintptr_t name;   // a char *
	uintptr_t hints;  // names and values in turn, each with its 0, and one more 0
	uintptr_t memory;
	int64_t offset;
	int64_t n;        // in: the bytes to move, the size to set; out: the bytes moved, the size
	int32_t what, mode; // the bits of mode as in file.go
} gmpi_file;

enum { GMPI_SPLIT, GMPI_SPLIT_NODE, GMPI_FREE };

typedef struct {
	int level;   // that the library grants
	int foreign; // other code of this process initialised MPI: World and Self are duplicates
	int max_tag; // the greatest tag
} gmpi_start;

// gmpi_load fills the table from a library that dlopen opened: NULL, or the required symbol it lacks.
const char *gmpi_load(void *so, int *family, int *large);
// A library, or what it loads for its network (UCX does it when it is opened), may replace Go's signal
// handlers, and a nil dereference would then kill the program. gmpi_restore_signals puts back what was
// there when they were saved, and lets handlers that came for other signals run on the signal stack,
// without which Go ends the program when such a signal comes.
void gmpi_save_signals(void);
void gmpi_restore_signals(void);

void gmpi_version(char *text, int room, int *major, int *minor);
int gmpi_state(void); // 0, 1 initialised, 2 finalised
int gmpi_init(gmpi_call *c, int level, gmpi_start *start);
int gmpi_finalize(gmpi_call *c);
int gmpi_release(gmpi_call *c); // in place of gmpi_finalize, where MPI is foreign
// gmpi_exit runs what the library has registered for the end of the program (atexit): see gmpi.c.
void gmpi_exit(void *so);
int gmpi_abort(uintptr_t comm, int code);
int gmpi_processor(gmpi_call *c, char *name);
double gmpi_wtime(void);
int gmpi_rank(gmpi_call *c, int *rank, int *size);
int gmpi_comm(gmpi_call *c, int what, int color, int key, uintptr_t *made);
uintptr_t gmpi_predefined(int self);
int gmpi_run(gmpi_call *c);
int gmpi_test(gmpi_call *c);
int gmpi_wait(gmpi_call *c);
int gmpi_cancel(gmpi_call *c);
int gmpi_placed(gmpi_call *c); // makes the type GMPI_PLACED
int gmpi_on_file(gmpi_file *f);
const char *gmpi_no_files(void); // the function of MPI-IO that the library lacks, or NULL
#endif
