//go:build mpi && cgo

#define _GNU_SOURCE
#include "gmpi.h"
#include "../include/gmpi.h"
#include "own.h"
#include <dlfcn.h>
#include <limits.h>
#ifdef __linux__
#include <link.h>
#endif
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The constants of the library that was opened.
static struct {
#define H(field, ...) uintptr_t field;
	GMPI_HANDLES(H)
#undef H
#define N(field, ...) intptr_t field;
	GMPI_NUMBERS(N)
	GMPI_OFFSETS(N)
#undef N
} K;

static uintptr_t types[GMPI_TYPES]; // by Type; the 16-bit floats travel as uint16
static uintptr_t ops[GMPI_OPS];
static const int sizes[GMPI_TYPES] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 16};

typedef void *pointer; // so that a list of variables can be declared
typedef union { long long align; char bytes[GMPI_MAX_STATUS]; } status;

// neutral is the place of an error class among those of error.go, whose order this is.
static int neutral(int class) {
	const intptr_t known[] = {K.err_buffer, K.err_count, K.err_type, K.err_tag, K.err_comm, K.err_rank, K.err_request,
		K.err_root, K.err_op, K.err_arg, K.err_truncate, K.err_no_mem};
	for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
		if (known[i] == class) return i + 1;
	const intptr_t files[] = {K.err_file, K.err_amode, K.err_not_same, K.err_no_such_file, K.err_file_exists, K.err_bad_file,
		K.err_access, K.err_no_space, K.err_quota, K.err_read_only, K.err_file_in_use, K.err_io, K.err_info, K.err_info_key,
		K.err_info_value, K.err_unsupported};
	for (int i = 0; i < (int)(sizeof files / sizeof *files); i++)
		if (files[i] == class) return GMPI_FILE_CLASSES + i;
	return 0;
}

#define GMPI_STATUS status
#define GMPI_COUNT long long
#define GMPI_AINT intptr_t
#define GMPI_OFFSET long long
#define GMPI_FILE pointer

// The table, and all that calls through it, once for handles that are ints and once for pointers.
#define NAME(x) int_##x
#define HANDLE int
#define OF(x) ((uintptr_t)(unsigned)(x))
#include "gmpi_family.h"
#undef NAME
#undef HANDLE
#undef OF
#define NAME(x) pointer_##x
#define HANDLE pointer
#define OF(x) ((uintptr_t)(x))
#include "gmpi_family.h"
#undef NAME
#undef HANDLE
#undef OF

static int pointers; // which of the two

static const char *constants(void *so, int family) {
#define N(field, name, mpich, ompi, abi) K.field = family == GMPI_MPICH ? mpich : family == GMPI_OPENMPI ? ompi : abi;
	GMPI_NUMBERS(N)
	GMPI_OFFSETS(N)
#undef N
#define H(field, name, mpich, ompi, abi) \
	K.field = family == GMPI_MPICH ? mpich : family == GMPI_OPENMPI ? (uintptr_t)dlsym(so, #ompi) : abi; \
	if (!K.field) return #ompi;
	GMPI_HANDLES(H)
#undef H
	const uintptr_t t[GMPI_TYPES] = {0, K.int8, K.uint8, K.int16, K.uint16, K.int32, K.uint32, K.int64, K.uint64,
		K.uint16, K.uint16, K.float32, K.float64, 0}; // the last is made when MPI is initialised
	const uintptr_t o[GMPI_OPS] = {K.sum, K.prod, K.min, K.max, K.max};
	memcpy(types, t, sizeof types);
	memcpy(ops, o, sizeof ops);
	return NULL;
}

// which says what so is. libmpi.so.12 of MPICH 5 and of Intel MPI have MPI_Abi_get_version as well,
// and answer with -1: they are not of the standard interface.
static int which(void *so) {
	if (dlsym(so, "ompi_mpi_comm_world")) return GMPI_OPENMPI;
	int (*abi)(int *, int *) = (int (*)(int *, int *))dlsym(so, "MPI_Abi_get_version");
	int major = -1, minor = -1;
	return abi && !abi(&major, &minor) && major > 0 ? GMPI_STANDARD : GMPI_MPICH;
}

const char *gmpi_load(void *so, int *family, int *large) {
	if (!dlsym(so, "MPI_Init_thread")) return "MPI_Init_thread";
	*family = which(so);
	pointers = *family != GMPI_MPICH;
	const char *missing = pointers ? pointer_load(so) : int_load(so);
	if (!missing) missing = constants(so, *family);
	*large = pointers ? pointer_all_large : int_all_large;
	return missing;
}

#define EITHER(f, ...) (pointers ? pointer_##f(__VA_ARGS__) : int_##f(__VA_ARGS__))

void gmpi_version(char *text, int room, int *major, int *minor) { EITHER(version, text, room, major, minor); }
int gmpi_state(void) { return EITHER(state); }
int gmpi_finalize(gmpi_call *c) { return EITHER(finalize, c); }
int gmpi_release(gmpi_call *c) { return EITHER(release, c); }
int gmpi_abort(uintptr_t comm, int code) { return EITHER(abort, comm, code); }
int gmpi_processor(gmpi_call *c, char *name) { return EITHER(processor, c, name); }
double gmpi_wtime(void) { return EITHER(wtime); }
int gmpi_rank(gmpi_call *c, int *rank, int *size) { return EITHER(rank, c, rank, size); }
int gmpi_comm(gmpi_call *c, int what, int color, int key, uintptr_t *made) { return EITHER(comm, c, what, color, key, made); }
uintptr_t gmpi_predefined(int self) { return self ? K.self : K.world; }
int gmpi_run(gmpi_call *c) { return EITHER(run, c); }
int gmpi_test(gmpi_call *c) { return EITHER(test, c); }
int gmpi_wait(gmpi_call *c) { return EITHER(wait, c); }
int gmpi_cancel(gmpi_call *c) { return EITHER(cancel, c); }
int gmpi_placed(gmpi_call *c) { return EITHER(make_placed, c); }
int gmpi_on_file(gmpi_file *f) { return EITHER(on_file, f); }
const char *gmpi_no_files(void) { return pointers ? pointer_no_files : int_no_files; }

int gmpi_init(gmpi_call *c, int level, gmpi_start *start) { return EITHER(init, c, level, start); }

// A C program's end runs the functions that libraries have registered with atexit; a Go program's does not
// on Linux. MPICH 5 tells its launcher only there, and not in MPI_Finalize, that this rank is done, and Hydra
// kills all ranks of a job of which one ends without. What runs such functions, of this library alone, is
// the library's own end function, which the loader calls at the end or when the library is unloaded; to
// unload it would take code away from under threads that have used it. Not to be called where C's exit will
// run: the end functions would run twice.
void gmpi_exit(void *so) {
#ifdef __linux__
	struct link_map *map;
	void (**end)(void) = NULL;
	size_t n = 0;
	if (dlinfo(so, RTLD_DI_LINKMAP, &map)) return;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_FINI_ARRAY) end = (void (**)(void))(map->l_addr + d->d_un.d_ptr);
		if (d->d_tag == DT_FINI_ARRAYSZ) n = d->d_un.d_val / sizeof *end;
	}
	while (end && n > 0) end[--n](); // in this order, says the ELF specification
#else
	(void)so;
#endif
}

static struct sigaction handlers[65];

void gmpi_save_signals(void) {
	for (int s = 1; s <= 64; s++)
		if (sigaction(s, NULL, &handlers[s])) handlers[s].sa_handler = SIG_IGN;
}

void gmpi_restore_signals(void) {
	struct sigaction is;
	for (int s = 1; s <= 64; s++) {
		if (sigaction(s, NULL, &is) || is.sa_handler == handlers[s].sa_handler) continue;
		if (handlers[s].sa_handler != SIG_DFL && handlers[s].sa_handler != SIG_IGN) {
			sigaction(s, &handlers[s], NULL);
		} else if (is.sa_handler != SIG_DFL && is.sa_handler != SIG_IGN && !(is.sa_flags & SA_ONSTACK)) {
			is.sa_flags |= SA_ONSTACK;
			sigaction(s, &is, NULL);
		}
	}
}
