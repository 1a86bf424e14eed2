//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"
static int32_t call_set(goccl_store s, const char *key, const void *value, uint64_t n) { return s.set(s.ctx, key, value, n); }
static int32_t call_get(goccl_store s, const char *key, int64_t timeout, uintptr_t value) { return s.get(s.ctx, key, timeout, value); }
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/boot"
)

// store is the boot.Store of a program's callbacks, and the bootstrap over it.
type store struct {
	*boot.Stored
	of   C.goccl_store
	host string
}

// HostID is what the caller says of where this rank runs.
func (s *store) HostID() string { return s.host }

var errNoCallback = errors.New("the caller's store has no such callback")

// Set is the callback set.
func (s *store) Set(_ context.Context, key string, value []byte) error {
	k, v := C.CString(key), C.CBytes(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(v)
	if rc := C.call_set(s.of, k, v, C.uint64_t(len(value))); rc != 0 {
		return fmt.Errorf("the callback set returned %d", int32(rc))
	}
	return nil
}

// answer is where goccl_value puts what get has found.
type answer struct {
	value []byte
	given bool
}

// Get is the callback get.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	wait := time.Duration(math.MaxInt64)
	if until, ok := ctx.Deadline(); ok {
		wait = max(time.Until(until), time.Millisecond)
	}
	k, a := C.CString(key), new(answer)
	defer C.free(unsafe.Pointer(k))
	h := cgo.NewHandle(a)
	defer h.Delete()
	rc := C.call_get(s.of, k, C.int64_t(wait), C.uintptr_t(h))
	switch {
	case rc != 0 && ctx.Err() != nil:
		return nil, fmt.Errorf("the callback get returned %d: %w", int32(rc), ctx.Err())
	case rc != 0:
		return nil, fmt.Errorf("the callback get returned %d", int32(rc))
	case !a.given:
		return nil, errors.New("the callback get returned 0 without a call of goccl_value")
	}
	return a.value, nil
}

// Wait is not needed here.
func (s *store) Wait(context.Context, ...string) error { return errNoCallback }

// Add is not needed here.
func (s *store) Add(context.Context, string, int64) (int64, error) { return 0, errNoCallback }

// mostValue is how large a value of the store may be.
const mostValue = 1 << 30

// putValue is goccl_value.
func putValue(value C.uintptr_t, bytes unsafe.Pointer, n C.uint64_t) {
	a, ok := cgo.Handle(value).Value().(*answer)
	if !ok || n > mostValue || bytes == nil && n > 0 {
		return
	}
	a.value, a.given = C.GoBytes(bytes, C.int(n)), true
}
