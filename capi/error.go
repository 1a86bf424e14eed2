//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"
static void call_done(goccl_done f, uintptr_t ctx, const goccl_error *e) { f((void *)ctx, e); }
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// background is the context of what only Options.Timeout ends.
var background = context.Background()

// wrong is the error of arguments that are.
func wrong(format string, args ...any) error {
	return &ccl.Error{Code: ccl.ErrArgument, Op: "goccl", Rank: -1, Peer: -1, Err: fmt.Errorf(format, args...)}
}

// guarded is f's error. A panic, which only what the caller says of its memory can cause, is one as
// well: a host program does not end for it.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &ccl.Error{Code: ccl.ErrBackend, Op: "goccl", Rank: -1, Peer: -1, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	return f()
}

// report is the code of err, which it writes to e where there is one. Success is written, too: e may
// still have the error of another call.
func report(e *C.goccl_error, err error) C.int32_t {
	switch {
	case err == nil && e == nil:
		return C.GOCCL_OK
	case err == nil:
		e.code, e.peer, e.missing_n, e.text[0] = C.GOCCL_OK, -1, 0, 0
	case e == nil:
		return C.int32_t(codeOf(err))
	default:
		fill(e, err)
	}
	return e.code
}

func codeOf(err error) ccl.Code {
	var code ccl.Code
	switch {
	case errors.As(err, &code):
		return code
	case errors.Is(err, context.DeadlineExceeded):
		return ccl.ErrTimeout
	}
	return ccl.ErrBackend
}

// fill writes err to e.
func fill(e *C.goccl_error, err error) {
	*e = C.goccl_error{code: C.int32_t(codeOf(err)), peer: -1}
	var of *ccl.Error
	if errors.As(err, &of) {
		e.peer, e.missing_n = C.int32_t(of.Peer), C.int32_t(len(of.Missing))
		for i, r := range of.Missing[:min(len(of.Missing), len(e.missing))] {
			e.missing[i] = C.int32_t(r)
		}
	}
	writeText(unsafe.Pointer(&e.text[0]), C.uint64_t(len(e.text)), err.Error())
}

// writeText writes s to room bytes, cut so that its 0 fits.
func writeText(to unsafe.Pointer, room C.uint64_t, s string) {
	if to == nil || room == 0 {
		return
	}
	b := unsafe.Slice((*byte)(to), int(min(room, 1<<20)))
	b[copy(b[:len(b)-1], s)] = 0
}

// text is a string of C's.
func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// tell calls back how a call has ended. The caller's ctx may be any number: Go must never take it for
// a pointer, and ends the process where one cannot be.
func tell(done C.goccl_done, ctx C.uintptr_t, err error) {
	if err == nil {
		C.call_done(done, ctx, nil)
		return
	}
	e := (*C.goccl_error)(C.malloc(C.sizeof_goccl_error)) // C's, since Go's stack may move while C has it
	defer C.free(unsafe.Pointer(e))
	fill(e, err)
	C.call_done(done, ctx, e)
}
