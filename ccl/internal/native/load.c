//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#include <dlfcn.h>
#include <stdio.h>

static void *find(U handle, const char *name, int required, char *missing, size_t cap) {
	void *p = dlsym((void *)handle, name);
	if (!p && required && !*missing)
		snprintf(missing, cap, "%s", name);
	return p;
}

int gcclFill(gccl_table *t, U handle, char *missing, size_t cap) {
	*missing = 0;
#define X(required, ret, name, params) t->name = find(handle, "nccl" #name, required, missing, cap);
	GCCL_FUNCS(X)
#undef X
	return !*missing;
}

int gcclVersion(const gccl_table *t, int *version, gccl_fault *f) {
	return gcclFail(t, NULL, f, "GetVersion", t->GetVersion(version));
}

int gcclUniqueId(const gccl_table *t, g_uid *id, gccl_fault *f) {
	return gcclFail(t, NULL, f, "GetUniqueId", t->GetUniqueId(id));
}
