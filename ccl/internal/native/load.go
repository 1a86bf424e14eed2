//go:build (nccl || rccl) && cgo && linux

package native

// #cgo CFLAGS: -std=gnu11 -Wall -Wextra
// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/signals"
)

// fakeSymbol is what the library for tests exports. It is used only on demand, so that no stray path can
// pass its figures off as a GPU's.
const fakeSymbol = "goccl_fake"

// library is a loaded NCCL or RCCL.
type library struct {
	v       *vendor
	t       *C.gccl_table
	version int
	fake    bool
	many    int // manyRanks

	prefix *C.char // of the device runtime's functions
}

// open loads the library and says what is wrong with it before a rank depends on it.
func (v *vendor) open() (*library, error) {
	restore := signals.Guard()
	defer restore()
	so, err := v.search.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s %s", v.name, so.Path(), fmt.Sprintf(format, args...))
	}
	l := &library{v: v, many: manyRanks, t: (*C.gccl_table)(C.calloc(1, C.size_t(unsafe.Sizeof(C.gccl_table{}))))}
	l.prefix = C.CString(v.prefix)
	l.fake = so.Symbol(fakeSymbol) != 0
	switch {
	case l.fake && !environ.AllowFake.Get():
		return nil, wrong("is the fake library for tests, which computes on host memory; set %s=1 to allow it, or unset %s to use the real one", environ.AllowFake.Name, v.search.Env)
	case !l.fake:
		for _, o := range v.others {
			if has := so.Symbol(o.symbol) != 0; has != o.lacks && (has || so.Symbol("ncclGetVersion") != 0) {
				return nil, wrong("is %s, not %s; %s names it", o.title, v.title, o.env)
			}
		}
	}
	var missing [64]C.char
	if C.gcclFill(l.t, C.U(so.Handle()), &missing[0], C.size_t(len(missing))) == 0 {
		if so.Symbol("ncclGetVersion") == 0 {
			return nil, wrong("is not %s: it has no function ncclGetVersion", v.title)
		}
		return nil, wrong("is not a %s that goccl can use: it has no function %s; %s", v.title, C.GoString(&missing[0]),
			v.search.Advice)
	}
	var n C.int
	var f C.gccl_fault
	if C.gcclVersion(l.t, &n, &f) != 0 {
		return nil, l.failure(&f)
	}
	if l.version = int(n); l.version < v.oldest {
		return nil, wrong("is %s %s, which is too old: %s", v.title, version(l.version), v.search.Advice)
	}
	// Also where no communicator is made on this rank: a missing device runtime is an error of all.
	if err := v.runtime.Open(); err != nil {
		return nil, err
	}
	return l, nil
}

// version reads like 2.28.9. Before 2.9 two digits were one: 2804 was 2.8.4.
func version(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// Version reads like "NCCL 2.28.9".
func (l *library) Version() string {
	s := l.v.title + " " + version(l.version)
	if l.fake {
		s += " (FAKE)"
	}
	return s
}

// ID is an ncclUniqueId. Rank 0 listens for the others from here on.
func (l *library) ID() ([]byte, error) {
	var id C.g_uid
	var f C.gccl_fault
	if C.gcclUniqueId(l.t, &id, &f) != 0 {
		return nil, l.failure(&f)
	}
	return C.GoBytes(unsafe.Pointer(&id), C.int(unsafe.Sizeof(id))), nil
}

// failure is the error of a call that filled f.
func (l *library) failure(f *C.gccl_fault) *engine.LibraryError {
	e := &engine.LibraryError{Library: l.Version(), Call: C.GoString(&f.call[0]), Result: int(f.result),
		Text: C.GoString(&f.text[0])}
	if f.device != 0 {
		e.Library = l.v.runtime.Name()
	}
	return e
}

var (
	errAborted  = errors.New("the communicator has been aborted")
	errUnfailed = errors.New("the communicator has not failed")
	errClosed   = errors.New("the communicator is closed")
)
