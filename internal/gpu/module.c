//go:build linux && cgo && (nccl || rccl)

#include "module.h"

#include <dlfcn.h>
#include <stdio.h>

#define POINTER(ret, name, params) ret(*name) params;
static struct { GCU_MODULE_FUNCS(POINTER) GCU_PARAM_FUNCS(POINTER) } cu; // a process has one driver

const char *gcu_fill_modules(uintptr_t library) {
	const char *missing = NULL;
	char name[64];
#define FIND(ret, function, params) \
	snprintf(name, sizeof name, "cu" #function); \
	*(void **)&cu.function = dlsym((void *)library, name); \
	if (!cu.function && !missing) missing = #function;
	GCU_MODULE_FUNCS(FIND)
#define LOOK(ret, function, params) *(void **)&cu.function = dlsym((void *)library, "cu" #function);
	GCU_PARAM_FUNCS(LOOK)
	return missing;
}

// The driver's functions need a context, which the runtime of CUDA 11 makes for a thread in its first call that needs one itself.
#define ON(dev) do { g_drc on_ = gdev_on(t, dev); if (on_) return gdev_ret(t, on_); } while (0)
#define WITH_CONTEXT(r, call) do { r = call; if (r == GCU_INVALID_CONTEXT && !t->Free(NULL)) r = call; } while (0)

int gcu_load(const gdev *t, int dev, const void *image, uintptr_t *module, char *log, size_t room) {
	u_jit options[] = { GCU_JIT_ERROR_LOG, GCU_JIT_ERROR_LOG_BYTES };
	void *values[] = { log, (void *)room };
	int r;
	log[0] = 0;
	ON(dev);
	WITH_CONTEXT(r, cu.ModuleLoadDataEx((u_module *)module, image, 2, options, values));
	return r;
}

int gcu_unload(const gdev *t, int dev, uintptr_t module) {
	int r;
	ON(dev);
	if ((r = t->DeviceSynchronize())) return gdev_ret(t, r); // kernels that run
	WITH_CONTEXT(r, cu.ModuleUnload((u_module)module));
	return r;
}

int gcu_function(const gdev *t, int dev, uintptr_t module, const char *name, uintptr_t *function, int *params, unsigned sizes[GPU_PARAMS]) {
	int r;
	*params = -1;
	ON(dev);
	WITH_CONTEXT(r, cu.ModuleGetFunction((u_function *)function, (u_module)module, name));
	if (r || !cu.FuncGetParamInfo) return r;
	for (*params = 0; *params < GPU_PARAMS; ++*params) {
		size_t offset, size;
		if (cu.FuncGetParamInfo((u_function)*function, *params, &offset, &size)) break;
		sizes[*params] = size;
	}
	return 0;
}

int gcu_launch(const gdev *t, int dev, uintptr_t stream, uintptr_t function, const unsigned dims[6], unsigned shared, const unsigned long long *values, int n) {
	static const unsigned long long none;
	void *params[GPU_PARAMS];
	int r;
	for (int i = 0; i < GPU_PARAMS; i++) // the driver reads as many as the kernel has
		params[i] = (void *)(i < n ? &values[i] : &none);
	ON(dev);
	WITH_CONTEXT(r, cu.LaunchKernel((u_function)function, dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], shared, (u_stream)stream, params, NULL));
	return r;
}
