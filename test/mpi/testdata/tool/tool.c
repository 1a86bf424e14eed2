// A library before MPI's own (PMPI). It counts what types are made and freed and says so in MPI_Finalize, refuses to
// make one of eight where REFUSE is set, grants no more than MPI_THREAD_SERIALIZED where SERIALIZED is, says which hints it is
// given, and when its own end function runs. With REDUCES it says which operators of MPI's own are asked for, of which
// types, and which of them the library gets wrong.
#include <mpi.h>
#include <stdint.h>
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

// The reductions: those of MPI's own operators are noted, and said once in MPI_Finalize.
#define TYPES(T) \
	T(0, int8, int8_t, uint8_t, MPI_INT8_T) T(1, uint8, uint8_t, uint8_t, MPI_UINT8_T) T(2, int16, int16_t, uint16_t, MPI_INT16_T) \
	T(3, uint16, uint16_t, uint16_t, MPI_UINT16_T) T(4, int32, int32_t, uint32_t, MPI_INT32_T) T(5, uint32, uint32_t, uint32_t, MPI_UINT32_T) \
	T(6, int64, int64_t, uint64_t, MPI_INT64_T) T(7, uint64, uint64_t, uint64_t, MPI_UINT64_T) T(8, float, float, float, MPI_FLOAT) \
	T(9, double, double, double, MPI_DOUBLE)
static const char *const op_names[] = {"sum", "prod", "min", "max"};
static int asked[11][4]; // the last: of another type

static void ask(MPI_Datatype type, MPI_Op op) {
	int t = 10;
#define T(i, name, c, wide, mpi) if (type == mpi) t = i;
	TYPES(T)
#undef T
	const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
	for (int o = 0; o < 4; o++)
		if (op == ops[o]) asked[t][o] = 1;
}

#define ONLY(...) __VA_ARGS__
#define BOTH(name, iname, parameters, arguments) \
	FORM(name, (ONLY parameters), (ONLY arguments)) \
	FORM(I##iname, (ONLY parameters, MPI_Request *request), (ONLY arguments, request))
#define FORM(name, parameters, arguments) int MPI_##name parameters { ask(type, op); return PMPI_##name arguments; }
#define TO_ALL(count) (const void *s, void *r, count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm), (s, r, n, type, op, comm)
#define TO_ONE(count) \
	(const void *s, void *r, count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm), (s, r, n, type, op, root, comm)
#define EACH(name, iname, ...) BOTH(name, iname, __VA_ARGS__)
#define ALL(suffix, count) \
	EACH(Allreduce##suffix, allreduce##suffix, TO_ALL(count)) \
	EACH(Reduce##suffix, reduce##suffix, TO_ONE(count)) \
	EACH(Reduce_scatter_block##suffix, reduce_scatter_block##suffix, TO_ALL(count)) \
	EACH(Reduce_scatter##suffix, reduce_scatter##suffix, TO_ALL(const count *)) \
	EACH(Scan##suffix, scan##suffix, TO_ALL(count)) \
	EACH(Exscan##suffix, exscan##suffix, TO_ALL(count))
ALL(, int)
#if MPI_VERSION >= 4
ALL(_c, MPI_Count)
#endif

// TOP is a number of the highest bit of an integer alone.
#define TOP(c) ((uint64_t)1 << (8 * sizeof(c) - 1))

// Each operator of MPI's own on each type, of numbers that wrap around and whose order depends on their sign.
#define T(i, name, c, wide, mpi) \
	static int wrong_##name(int o, MPI_Op op) { \
		enum { most = 1000 }; \
		static c in[most], out[most], want[most]; \
		const c numbers[] = {(c)100, (c)1, (c)(wide)-1, (c)TOP(c), (c)50000, (c)20000, 0}; \
		for (int k = 0; k < 49; k++) { \
			for (int j = 0; j < most; j++) { \
				const c x = in[j] = numbers[(j + k) % 7], y = out[j] = numbers[(j + k / 7) % 7]; \
				want[j] = o == 0 ? (c)((wide)x + (wide)y) : o == 1 ? (c)(1u * (wide)x * (wide)y) : o == 2 ? (x < y ? x : y) : x > y ? x : y; \
			} \
			if (PMPI_Reduce_local(in, out, most, mpi, op)) return 1; \
			for (int j = 0; j < most; j++) \
				if (out[j] != want[j]) return 1; \
		} \
		return 0; \
	}
TYPES(T)
#undef T

static void say_reductions(void) {
	const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
	for (int o = 0; o < 4; o++) {
#define T(i, name, c, wide, mpi) \
		if (asked[i][o]) printf("tool: asks for %s of %s\n", op_names[o], #name); \
		if (wrong_##name(o, ops[o])) printf("tool: gets wrong %s of %s\n", op_names[o], #name);
		TYPES(T)
#undef T
		if (asked[10][o]) printf("tool: asks for %s of another type\n", op_names[o]);
	}
}

int MPI_Finalize(void) {
	if (getenv("REDUCES")) say_reductions();
	printf("tool: %s made, %d types left, %s refused\n", made ? "some" : "none", made - freed, refused ? "some" : "none");
	fflush(stdout);
	return PMPI_Finalize();
}

__attribute__((destructor)) static void end(void) {
	printf("tool: ended\n");
	fflush(stdout);
}
