//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"

// The callbacks that this thread is in, and whose they are.
static _Thread_local struct frame { uintptr_t comm; struct frame *up; } *frames;

static void call_done(uintptr_t comm, goccl_done f, uintptr_t ctx, const goccl_error *e) {
	struct frame this = { comm, frames };
	frames = &this;
	f((void *)ctx, e);
	frames = this.up;
}

static int called_back(uintptr_t comm) {
	for (struct frame *f = frames; f; f = f->up)
		if (f->comm == comm)
			return 1;
	return 0;
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
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

// report returns err's code, and copies its text to e unless e is NULL. Success is written, too: e may
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
	writeText(unsafe.Pointer(&e.text[0]), C.uint64_t(len(e.text)), lines.ReplaceAllString(err.Error(), ""))
}

// lines are those of this library, which say nothing to the program of C or Python that has called it.
var lines = regexp.MustCompile(`(?:; this one is)? at capi/\w+\.go:\d+`)

// writeText writes s to room bytes, cut between two characters so that its 0 fits.
func writeText(to unsafe.Pointer, room C.uint64_t, s string) {
	if to == nil || room == 0 {
		return
	}
	b := unsafe.Slice((*byte)(to), int(min(room, 1<<20)))
	n := copy(b[:len(b)-1], s)
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	b[n] = 0
}

// text is a string of C's.
func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// tell calls back that a call was refused. Nothing waits for that callback.
func tell(done C.goccl_done, ctx C.uintptr_t, err error) { tellOf(nil, done, ctx, err) }

// tellOf calls back how a queued call of c has ended. The caller's ctx may be any number: Go must never
// take it for a pointer, and ends the process where one cannot be.
func tellOf(c *comm, done C.goccl_done, ctx C.uintptr_t, err error) {
	var e *C.goccl_error
	if err != nil {
		e = (*C.goccl_error)(C.malloc(C.sizeof_goccl_error)) // C's, since Go's stack may move while C has it
		defer C.free(unsafe.Pointer(e))
		fill(e, err)
	}
	C.call_done(identity(c), done, ctx, e)
}

// calledBack reports whether this thread is in a callback of a queued call of c.
func calledBack(c *comm) bool { return C.called_back(identity(c)) != 0 }

// identity is c for C, which only compares it.
func identity(c *comm) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(c))) }
