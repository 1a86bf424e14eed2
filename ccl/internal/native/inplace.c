//go:build cgo && linux && (nccl || rccl)

// An all-to-all in place, or a message that takes the place of the one sent, would overwrite what it has yet to
// send, and no library promises one. Its source is copied, into memory that lives in the order of the stream (CUDA 11.2, ROCm 5.2), so
// that nothing waits and a captured graph has it as nodes of its own.
#include "native.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(call, result) gcclDeviceFail(e, call, result)

static size_t sourceSize(const gccl_end *e, const gccl_call *c) {
	size_t n = c->kind == ALL_TO_ALL ? c->count * e->size : c->kind == SEND_RECV ? c->sent : 0;
	for (int r = 0; c->kind == ALL_TO_ALL_V && r < e->size; r++)
		n += c->sc[r] * c->scale;
	return n * c->width;
}

int gcclCopySources(gccl_end *e, gccl_call *calls, int n, g_stream s) {
	e->ncopies = 0;
	for (int i = 0; i < n; i++) {
		gccl_call *c = &calls[i];
		size_t bytes = c->dst == c->src && c->src ? sourceSize(e, c) : 0;
		if (!bytes || e->size == 1)
			continue;
		if (!e->dev->MallocAsync || !e->dev->FreeAsync) {
			e->fault = (gccl_fault){ .result = GCCL_INVALID_USAGE, .call = "MallocAsync",
				.text = "use a second buffer: in place it needs MallocAsync, which this device runtime lacks" };
			return GCCL_INVALID_USAGE;
		}
		if (e->ncopies == e->capcopies) {
			void *more = realloc(e->copies, (e->capcopies = 2 * e->capcopies + 4) * sizeof *e->copies);
			if (!more)
				return FAIL("MallocAsync", 2);
			e->copies = more;
		}
		void *copy;
		int r = gcclOn(e);
		if (!r && !(r = FAIL("MallocAsync", e->dev->MallocAsync(&copy, bytes, s)))) {
			e->copies[e->ncopies++] = copy;
			r = FAIL("MemcpyAsync", e->dev->MemcpyAsync(copy, (void *)c->src, bytes, GDEV_DEVICE_TO_DEVICE, s));
			c->src = (U)copy;
		}
		if (r) {
			gcclFreeSources(e, s);
			return r;
		}
	}
	return 0;
}

int gcclFreeSources(gccl_end *e, g_stream s) {
	int r = 0;
	if (!e->ncopies || (r = gcclOn(e)))
		return r;
	while (e->ncopies) {
		int f = e->dev->FreeAsync(e->copies[--e->ncopies], s);
		if (f && !r)
			r = FAIL("FreeAsync", f);
	}
	return r;
}
