//go:build cgo && unix

package main

/*
#cgo CFLAGS: -I${SRCDIR}/../include
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"
*/
import "C"

import (
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// The functions of include/goccl.h, in its order.

//export goccl_abi
func goccl_abi() C.int32_t { return C.GOCCL_ABI }

var version = C.CString(ccl.Version)

//export goccl_version
func goccl_version() *C.char { return version }

//export goccl_open
func goccl_open(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, open) }))
}

//export goccl_open_later
func goccl_open_later(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, openLater) }))
}

//export goccl_join
func goccl_join(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, joinJob) }))
}

//export goccl_value
func goccl_value(value C.uintptr_t, bytes unsafe.Pointer, n C.uint64_t) {
	_ = guarded(func() error { putValue(value, bytes, n); return nil })
}

//export goccl_split
func goccl_split(comm C.goccl_comm, color, key C.int32_t, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		return childOf(comm, child, func(c *ccl.Comm) (*ccl.Comm, error) { return c.Split(background, int(color), int(key)) })
	}))
}

//export goccl_subset
func goccl_subset(comm C.goccl_comm, ranks *C.int32_t, n, tag C.int32_t, timeout C.int64_t, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return subset(comm, ranks, n, tag, timeout, child) }))
}

//export goccl_shrink
func goccl_shrink(comm C.goccl_comm, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		return childOf(comm, child, func(c *ccl.Comm) (*ccl.Comm, error) { return c.Shrink(background) })
	}))
}

//export goccl_close
func goccl_close(comm C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return closeComm(comm) }))
}

//export goccl_abort
func goccl_abort(comm C.goccl_comm, why *C.char, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return abort(comm, text(why)) }))
}

//export goccl_failed
func goccl_failed(comm C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := find(comm)
		if e != nil {
			return e
		}
		return c.failed()
	}))
}

//export goccl_rank
func goccl_rank(comm C.goccl_comm) C.int32_t {
	return number(comm, (*ccl.Comm).Rank)
}

//export goccl_size
func goccl_size(comm C.goccl_comm) C.int32_t {
	return number(comm, (*ccl.Comm).Size)
}

//export goccl_describe
func goccl_describe(comm C.goccl_comm, to *C.char, room C.uint64_t, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := ready(comm)
		if e == nil {
			writeText(unsafe.Pointer(to), room, c.of.Load().String())
		}
		return e
	}))
}

//export goccl_supports
func goccl_supports(comm C.goccl_comm, kind, typ, op C.int32_t, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := ready(comm)
		if e != nil {
			return e
		}
		return c.supports(kind, typ, op)
	}))
}

// goccl_call makes a number of ctx before Go's stack can move, which looks at all pointers on it.
//
//export goccl_call
//go:nosplit
func goccl_call(comm C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done C.goccl_done, ctx unsafe.Pointer, err *C.goccl_error) C.int32_t {
	return callOn(comm, calls, n, timeout, done, C.uintptr_t(uintptr(ctx)), err)
}

// callOn is goccl_call.
//
//go:noinline
func callOn(comm C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done C.goccl_done, ctx C.uintptr_t, err *C.goccl_error) C.int32_t {
	if done != nil {
		if e := guarded(func() error { return queueCalls(comm, calls, n, timeout, done, ctx) }); e != nil {
			tell(done, ctx, e)
		}
		return 0
	}
	return report(err, guarded(func() error { return makeCalls(comm, calls, n, timeout) }))
}

// goccl_message makes a number of ctx as goccl_call does.
//
//export goccl_message
//go:nosplit
func goccl_message(comm C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t, done C.goccl_arrived, ctx unsafe.Pointer, from *C.int32_t, err *C.goccl_error) C.int32_t {
	return messageOn(comm, m, tag, timeout, done, C.uintptr_t(uintptr(ctx)), from, err)
}

// messageOn is goccl_message.
//
//go:noinline
func messageOn(comm C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t, done C.goccl_arrived, ctx C.uintptr_t, from *C.int32_t, err *C.goccl_error) C.int32_t {
	if done != nil {
		if e := guarded(func() error { return postMessage(comm, m, tag, timeout, done, ctx) }); e != nil {
			tellArrived(done, ctx, -1, e)
		}
		return 0
	}
	return report(err, guarded(func() error { return passMessage(comm, m, tag, timeout, from) }))
}

//export goccl_alloc
func goccl_alloc(comm C.goccl_comm, bytes C.uint64_t, memory *unsafe.Pointer, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return alloc(comm, bytes, memory) }))
}

//export goccl_free
func goccl_free(memory unsafe.Pointer) {
	if memory != nil {
		ccl.FreeSlice(unsafe.Slice((*byte)(memory), 1))
	}
}
