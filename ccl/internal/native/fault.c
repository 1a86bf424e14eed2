//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#include <stdio.h>

int gcclFail(const gccl_table *t, g_comm comm, gccl_fault *f, const char *call, int result) {
	if (result == GCCL_SUCCESS)
		return result;
	const char *text = t->GetErrorString(result), *last = t->GetLastError ? t->GetLastError(comm) : "";
	f->result = result;
	f->device = 0;
	snprintf(f->call, sizeof f->call, "nccl%s", call);
	snprintf(f->text, sizeof f->text, last && *last ? "%s: %s" : "%s%s", text ? text : "", last ? last : "");
	return result;
}

int gcclDeviceFail(gccl_end *e, const char *call, int result) {
	if (result == GDEV_OK)
		return 0;
	gccl_fault *f = &e->fault;
	const char *text = e->dev->GetErrorString(gdev_ret(e->dev, result));
	f->result = result;
	f->device = 1;
	snprintf(f->call, sizeof f->call, "%s%s", e->prefix, call);
	snprintf(f->text, sizeof f->text, "%s", text ? text : "");
	return -1;
}
