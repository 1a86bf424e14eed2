// symbols.c: what Open MPI exports, so that conformance.c links without it.
#include "gmpi.h"
#define H(field, name, mpich, ompi, abi) char ompi[1];
GMPI_HANDLES(H)
