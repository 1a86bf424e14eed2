//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#include <stdlib.h>
#include <string.h>

// gccl_scaled is an operator of a communicator's. It goes with it.
struct gccl_scaled { unsigned char factor[8]; int type, op; };

int gcclScaled(gccl_end *e, gccl_call *calls, int n) {
	for (int i = 0; i < n; i++) {
		gccl_call *c = &calls[i];
		if (c->op != GCCL_SCALED)
			continue;
		int k = 0;
		while (k < e->nscaled && (e->scaled[k].type != c->type || memcmp(e->scaled[k].factor, c->factor, sizeof c->factor)))
			k++;
		if (k == e->nscaled) {
			struct gccl_scaled *more = realloc(e->scaled, (k + 1) * sizeof *more), s = { .type = c->type };
			if (!more)
				return gcclFail(e->ccl, e->comm, &e->fault, "RedOpCreatePreMulSum", GCCL_SYSTEM);
			e->scaled = more;
			memcpy(s.factor, c->factor, sizeof s.factor);
			int r = e->ccl->RedOpCreatePreMulSum(&s.op, s.factor, s.type, GCCL_SCALAR_HOST, e->comm);
			if (r)
				return gcclFail(e->ccl, e->comm, &e->fault, "RedOpCreatePreMulSum", r);
			more[e->nscaled++] = s;
		}
		c->op = e->scaled[k].op;
	}
	return 0;
}
