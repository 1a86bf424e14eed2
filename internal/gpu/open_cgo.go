//go:build linux && cgo && (nccl || rccl)

package gpu

/*
#include "cudriver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// fill looks up every function. It returns the name of a required one that is not there, or NULL.
static const char *fill(gdev *t, uintptr_t library, const char *prefix) {
	const char *missing = NULL;
	char name[64];
#define FILL(required, ret, function, params) \
	snprintf(name, sizeof name, "%s" #function, prefix); \
	*(void **)&t->function = dlsym((void *)library, name); \
	if (required && !t->function && !missing) missing = #function;
	GDEV_FUNCS(FILL)
	if (!missing && !t->FreeHost && !t->HostFree) missing = "FreeHost";
	return missing;
}

static const char *fill_from_driver(gdev *t, uintptr_t library) { return gcu_fill(t, (void *)library); }
*/
import "C"

import (
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/environ"
)

// fakeSymbol is what the library for tests exports. It is used only on demand, so that no stray path can
// pass its figures off as a GPU's.
const fakeSymbol = "goccl_fake"

// open opens r's library and looks up its functions.
func open(r *Runtime) (Driver, error) {
	if !r.tagged {
		return nil, r.notBuilt()
	}
	so, err := dl.Search{What: "the " + r.name + " runtime", Env: r.env, Names: r.libs, Advice: r.advice}.Open()
	if err != nil {
		return nil, r.unavailable("%w", err)
	}
	isFake := so.Symbol(fakeSymbol) != 0
	if isFake && !environ.AllowFake.Get() {
		return nil, r.unavailable("%s is the fake library for tests, which computes on host memory; set %s=1 to allow it, or unset %s to use the real one", so.Path(), environ.AllowFake.Name, r.env)
	}
	l := &library{t: (*C.gdev)(C.calloc(1, C.sizeof_gdev)), file: so.Path(), isFake: isFake}
	if symbols, missing := l.fill(so, r); missing != "" {
		C.free(unsafe.Pointer(l.t))
		return nil, r.unavailable("%s has no %s%s: it is not the %s runtime, or too old; %s, or set %s to its file",
			so.Path(), symbols, missing, r.name, r.advice, r.env)
	}
	return l, nil
}

// fill looks up the functions. It returns the name of a required function that the library lacks,
// without the prefix symbols.
func (l *library) fill(so *dl.Library, r *Runtime) (symbols, missing string) {
	if r == CUDA && so.Symbol("cuInit") != 0 {
		return "cu", C.GoString(C.fill_from_driver(l.t, C.uintptr_t(so.Handle())))
	}
	prefix := C.CString(r.prefix)
	defer C.free(unsafe.Pointer(prefix))
	return r.prefix, C.GoString(C.fill(l.t, C.uintptr_t(so.Handle()), prefix))
}
