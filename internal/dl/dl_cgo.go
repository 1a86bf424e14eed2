//go:build cgo && unix

package dl

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <link.h>
#endif

// dlerror is of the thread: text is taken in the same call.
static void *goccl_dlopen(const char *name, int global, char *text, int room) {
	dlerror();
	void *so = dlopen(name, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
	const char *what = so ? "" : dlerror();
	snprintf(text, room, "%s", what ? what : "no reason given");
#ifdef __linux__
	struct link_map *map;
	if (so && !dlinfo(so, RTLD_DI_LINKMAP, &map) && map->l_name) snprintf(text, room, "%s", map->l_name);
#endif
	return so;
}

static void *goccl_dlsym(void *so, const char *name) { return dlsym(so, name); }
*/
import "C"

import (
	"errors"
	"unsafe"
)

// open returns the library's file, or the loader's text as the error.
func open(name string, global bool) (handle uintptr, path string, err error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var text [4096]C.char
	scope := C.int(0)
	if global {
		scope = 1
	}
	so := C.goccl_dlopen(cname, scope, &text[0], C.int(len(text)))
	said := C.GoString(&text[0])
	if so == nil {
		return 0, "", errors.New(said)
	}
	if said == "" {
		said = name
	}
	return uintptr(so), said, nil
}

func symbol(handle uintptr, name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.goccl_dlsym(*(*unsafe.Pointer)(unsafe.Pointer(&handle)), cname))
}
