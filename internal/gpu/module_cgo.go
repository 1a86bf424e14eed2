//go:build linux && cgo && (nccl || rccl)

package gpu

/*
#include <stdlib.h>

// The driver keeps nothing of what it is given here.
#cgo nocallback gcu_launch
#cgo noescape gcu_launch

#include "module.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
)

// modules are opened once in a process: there is one driver.
var modules struct {
	sync.Once
	err error
}

// Programs are the functions of the driver for modules: those of the runtime's own file, if it is
// the driver or the fake, else of libcuda.so.1, which the runtime has opened already.
func (l *library) Programs(r *Runtime) (Programs, error) {
	modules.Do(func() { modules.err = l.findModules(r) })
	if modules.err != nil {
		return nil, modules.err
	}
	return loader{l.t}, nil
}

func (l *library) findModules(r *Runtime) error {
	so, err := dl.Search{What: "the CUDA runtime", Names: []string{l.file}}.Open()
	if err == nil && so.Symbol("cuModuleLoadDataEx") == 0 {
		so, err = dl.Search{What: "the CUDA driver", Names: []string{"libcuda.so.1"},
			Advice: "install NVIDIA's driver"}.Open()
	}
	if err != nil {
		return r.unavailable("%w", err)
	}
	if missing := C.gcu_fill_modules(C.uintptr_t(so.Handle())); missing != nil {
		return r.unavailable("%s has no cu%s, which kernels need: it is not the CUDA driver, or too old", so.Path(),
			C.GoString(missing))
	}
	return nil
}

// loader calls the driver.
type loader struct{ t *C.gdev }

func (l loader) Load(dev int, image []byte) (module uintptr, log string, c Code) {
	var m C.uintptr_t
	const room = 4096
	text := (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(text))
	held := C.CBytes(append(image[:len(image):len(image)], 0)) // PTX ends with a zero
	defer C.free(held)
	c = Code(C.gcu_load(l.t, C.int(dev), held, &m, text, room))
	return uintptr(m), C.GoString(text), c
}

func (l loader) Unload(dev int, module uintptr) Code {
	return Code(C.gcu_unload(l.t, C.int(dev), C.uintptr_t(module)))
}

func (l loader) Function(dev int, module uintptr, name string) (function uintptr, sizes []int, c Code) {
	var f C.uintptr_t
	var n C.int
	var found [MaxParams]C.uint
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	if c = Code(C.gcu_function(l.t, C.int(dev), C.uintptr_t(module), cname, &f, &n, &found[0])); c == Success && n >= 0 {
		sizes = make([]int, n)
		for i := range sizes {
			sizes[i] = int(found[i])
		}
	}
	return uintptr(f), sizes, c
}

func (l loader) Start(dev int, stream, function uintptr, dims [6]uint32, shared int, values [MaxParams]uint64,
	n int) Code {
	return Code(C.gcu_launch(l.t, C.int(dev), C.uintptr_t(stream), C.uintptr_t(function),
		(*C.uint)(unsafe.Pointer(&dims)), C.uint(shared),
		(*C.ulonglong)(unsafe.Pointer(&values)), C.int(n)))
}

const _ = uint(C.GPU_PARAMS-MaxParams) + uint(MaxParams-C.GPU_PARAMS) // they are equal
