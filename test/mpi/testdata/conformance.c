// conformance.c: include/gmpi.h against a real header, which the compiler is told to include first.
// FAMILY is its column: 0 MPICH's, 1 Open MPI's, 2 the standard's. Signatures are compared by the
// compiler; values, which are no constants in all families, when the program runs.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GMPI_COMM MPI_Comm
#define GMPI_TYPE MPI_Datatype
#define GMPI_OP MPI_Op
#define GMPI_INFO MPI_Info
#define GMPI_ERRHANDLER MPI_Errhandler
#define GMPI_REQUEST MPI_Request
#define GMPI_STATUS MPI_Status
#define GMPI_COUNT MPI_Count
#define GMPI_AINT MPI_Aint
#define GMPI_OFFSET MPI_Offset
#define GMPI_FILE MPI_File
#define GMPI_USER MPI_User_function
#define GMPI_HANDLER MPI_Comm_errhandler_function
#include "gmpi.h"

#define SAME(function, result, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&function), result (*) parameters), #function);
#define F(required, result, name, parameters) F_##required(result, name, parameters)
#define F_1(result, name, parameters) SAME(MPI_##name, result, parameters)
#define NARROW(name, iname, parameters) \
	SAME(MPI_##name, int, parameters(int, const int *, const int *, )) \
	SAME(MPI_I##iname, int, parameters(int, const int *, const int *, , MPI_Request *))
#if MPI_VERSION >= 4
#define F_0 F_1
#define G(name, iname, parameters) \
	NARROW(name, iname, parameters) \
	SAME(MPI_##name##_c, int, parameters(MPI_Count, const MPI_Count *, const MPI_Aint *, )) \
	SAME(MPI_I##iname##_c, int, parameters(MPI_Count, const MPI_Count *, const MPI_Aint *, , MPI_Request *))
#else // without the functions of MPI 4, which are optional
#define F_0(result, name, parameters)
#define G NARROW
#endif
GMPI_FUNCTIONS(F)
GMPI_FORMS(G)
GMPI_FILE_FUNCTIONS(F_1)

_Static_assert(sizeof(MPI_Comm) == (FAMILY == 0 ? sizeof(int) : sizeof(void *)), "handles");
_Static_assert(sizeof(MPI_Datatype) == sizeof(MPI_Comm) && sizeof(MPI_Op) == sizeof(MPI_Comm) &&
	sizeof(MPI_Info) == sizeof(MPI_Comm) && sizeof(MPI_Errhandler) == sizeof(MPI_Comm) &&
	sizeof(MPI_Request) == sizeof(MPI_Comm), "handles");
_Static_assert(sizeof(MPI_File) == sizeof(void *) && sizeof(MPI_Offset) == sizeof(long long), "files");
_Static_assert(sizeof(MPI_Count) == sizeof(long long) && sizeof(MPI_Aint) == sizeof(intptr_t), "counts");
_Static_assert(sizeof(MPI_Status) <= GMPI_MAX_STATUS, "status");
_Static_assert(MPI_MAX_ERROR_STRING <= GMPI_MAX_ERROR_STRING, "error string");
_Static_assert(MPI_MAX_PROCESSOR_NAME <= GMPI_MAX_PROCESSOR_NAME, "processor name");
_Static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= GMPI_MAX_LIBRARY_VERSION_STRING, "library version");

#define PICK(mpich, ompi, abi) (FAMILY == 0 ? (mpich) : FAMILY == 1 ? (ompi) : (abi))

static int wrong, compared;

static void compare(const char *name, intptr_t theirs, intptr_t ours) {
	compared++;
	if (theirs == ours) return;
	wrong++;
	printf("%s is %#tx here, and %#tx in gmpi.h\n", name, theirs, ours);
}

#if FAMILY == 1
#define SYMBOL(s) ((intptr_t)&s)
#else
#define SYMBOL(s) 0
#endif

int main(void) {
#define H(field, name, mpich, ompi, abi) compare("MPI_" #name, (intptr_t)MPI_##name, PICK(mpich, SYMBOL(ompi), abi));
	GMPI_HANDLES(H)
#define N(field, name, mpich, ompi, abi) compare("MPI_" #name, (intptr_t)MPI_##name, PICK(mpich, ompi, abi));
	GMPI_NUMBERS(N)
#define O(field, member, mpich, ompi, abi) compare("offset of " #member, offsetof(MPI_Status, member), PICK(mpich, ompi, abi));
	GMPI_OFFSETS(O)
	printf("%d values compared, %d wrong\n", compared, wrong);
	return wrong > 0;
}
