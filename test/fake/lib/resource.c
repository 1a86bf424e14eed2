// Memory of the library, and what belongs to a communicator: registrations and operators.
#include "ccl.h"
#include "reduce.h"

g_res cudaMalloc(void **p, size_t n);
g_res cudaFree(void *p);
g_res ncclMemAlloc(void **p, size_t n) { return cudaMalloc(p, n) ? GCCL_UNHANDLED_CUDA : 0; }
g_res ncclMemFree(void *p) { return cudaFree(p) ? GCCL_UNHANDLED_CUDA : 0; }

typedef struct { g_comm c; void *p; } registration;

// goccl_fake_registered counts registrations that are left, of communicators that are, too.
static atomic_int registered;
int goccl_fake_registered(void) { return registered; }

g_res ncclCommRegister(g_comm c, void *p, size_t n, void **handle) {
	int error = usable(c, __func__);
	if (!error && !thread_has_context()) // cuMemGetAddressRange, NCCL since 2.30.3
		error = (warn("%s : no context is current", __func__), GCCL_UNHANDLED_CUDA);
	if (!error && !reach(p, n))
		error = (warn("%s : not memory that was allocated", __func__), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	registration *r = malloc(sizeof *r);
	*r = (registration){ c, p };
	c->registered++;
	registered++;
	*handle = r;
	return 0;
}

g_res ncclCommDeregister(g_comm c, void *handle) {
	int error = usable(c, __func__);
	registration *r = handle;
	if (!error && r->c != c)
		error = (warn("%s : a handle of another communicator", __func__), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	if (!reach(r->p, 1))
		violation("memory was freed while it was registered");
	c->registered--;
	registered--;
	free(r);
	return 0;
}

void forget_registered(g_comm c) { registered -= c->registered; }

g_res ncclRedOpCreatePreMulSum(g_op *op, void *scalar, g_dtype type, g_resid where, g_comm c) {
	int error = usable(c, __func__);
	if (!error && (where != GCCL_SCALAR_HOST || type < GCCL_FLOAT16 || type > GCCL_BFLOAT16 || c->nfactors == 256))
		error = (warn("%s : invalid type %d or residence %d", __func__, type, where), GCCL_INVALID_ARGUMENT);
	if (error)
		return error;
	c->factors[c->nfactors] = element(scalar, type);
	*op = GCCL_AVG + 1 + c->nfactors++;
	return 0;
}
