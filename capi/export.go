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

// What the functions of include/goccl.h enter, in its order: see enter.c.

var version = C.CString(ccl.Version)

//export gocclgo_version
func gocclgo_version() *C.char { return version }

//export gocclgo_open
func gocclgo_open(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, open) }))
}

//export gocclgo_open_later
func gocclgo_open_later(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, openLater) }))
}

//export gocclgo_join
func gocclgo_join(o *C.goccl_options, comm *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return openTo(o, comm, joinJob) }))
}

//export gocclgo_value
func gocclgo_value(value C.uintptr_t, bytes unsafe.Pointer, n C.uint64_t) {
	_ = guarded(func() error { putValue(value, bytes, n); return nil })
}

//export gocclgo_split
func gocclgo_split(comm C.goccl_comm, color, key C.int32_t, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		return childOf(comm, child, func(c *ccl.Comm) (*ccl.Comm, error) { return c.Split(background, int(color), int(key)) })
	}))
}

//export gocclgo_subset
func gocclgo_subset(comm C.goccl_comm, ranks *C.int32_t, n, tag C.int32_t, timeout C.int64_t, child *C.goccl_comm,
	err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return subset(comm, ranks, n, tag, timeout, child) }))
}

//export gocclgo_shrink
func gocclgo_shrink(comm C.goccl_comm, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		return childOf(comm, child, func(c *ccl.Comm) (*ccl.Comm, error) { return c.Shrink(background) })
	}))
}

//export gocclgo_replace
func gocclgo_replace(comm C.goccl_comm, timeout C.int64_t, child *C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return replace(comm, timeout, child) }))
}

//export gocclgo_fresh
func gocclgo_fresh(comm C.goccl_comm, ranks *C.int32_t, n C.int32_t) C.int32_t {
	return number(comm, func(c *ccl.Comm) int {
		fresh := c.Fresh()
		if ranks != nil && n > 0 {
			for i, r := range fresh[:min(len(fresh), int(n))] {
				unsafe.Slice((*int32)(ranks), n)[i] = int32(r)
			}
		}
		return len(fresh)
	})
}

//export gocclgo_restored
func gocclgo_restored(comm C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := ready(comm)
		if e == nil {
			c.of.Load().Restored()
		}
		return e
	}))
}

//export gocclgo_waiting
func gocclgo_waiting(comm C.goccl_comm) C.int32_t {
	return number(comm, (*ccl.Comm).Waiting)
}

//export gocclgo_close
func gocclgo_close(comm C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return closeComm(comm) }))
}

//export gocclgo_abort
func gocclgo_abort(comm C.goccl_comm, why *C.char, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return abort(comm, text(why)) }))
}

//export gocclgo_failed
func gocclgo_failed(comm C.goccl_comm, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := find(comm)
		if e != nil {
			return e
		}
		return c.failed()
	}))
}

//export gocclgo_rank
func gocclgo_rank(comm C.goccl_comm) C.int32_t {
	return number(comm, (*ccl.Comm).Rank)
}

//export gocclgo_size
func gocclgo_size(comm C.goccl_comm) C.int32_t {
	return number(comm, (*ccl.Comm).Size)
}

//export gocclgo_describe
func gocclgo_describe(comm C.goccl_comm, to *C.char, room C.uint64_t, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := ready(comm)
		if e == nil {
			writeText(unsafe.Pointer(to), room, c.of.Load().String())
		}
		return e
	}))
}

//export gocclgo_supports
func gocclgo_supports(comm C.goccl_comm, kind, typ, op C.int32_t, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error {
		c, e := ready(comm)
		if e != nil {
			return e
		}
		return c.supports(kind, typ, op)
	}))
}

// The caller's ctx is a number here: Go would look at a pointer, and it may be none.
//
//export gocclgo_call
func gocclgo_call(comm C.goccl_comm, calls *C.goccl_args, n C.int32_t, timeout C.int64_t, done C.goccl_done,
	ctx C.uintptr_t, err *C.goccl_error) C.int32_t {
	if done != nil {
		if e := guarded(func() error { return queueCalls(comm, calls, n, timeout, done, ctx) }); e != nil {
			tell(done, ctx, e)
		}
		return report(err, nil)
	}
	return report(err, guarded(func() error { return makeCalls(comm, calls, n, timeout) }))
}

//export gocclgo_monitored_barrier
func gocclgo_monitored_barrier(comm C.goccl_comm, timeout C.int64_t, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return rollCall(comm, timeout) }))
}

//export gocclgo_message
func gocclgo_message(comm C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t, done C.goccl_arrived,
	ctx C.uintptr_t, from *C.int32_t, err *C.goccl_error) C.int32_t {
	if done != nil {
		if e := guarded(func() error { return postMessage(comm, m, tag, timeout, done, ctx) }); e != nil {
			tellArrived(done, ctx, -1, e)
		}
		return report(err, nil)
	}
	return report(err, guarded(func() error { return passMessage(comm, m, tag, timeout, from) }))
}

//export gocclgo_alloc
func gocclgo_alloc(comm C.goccl_comm, bytes C.uint64_t, memory *unsafe.Pointer, err *C.goccl_error) C.int32_t {
	return report(err, guarded(func() error { return alloc(comm, bytes, memory) }))
}

//export gocclgo_free
func gocclgo_free(memory unsafe.Pointer) {
	if memory != nil {
		ccl.FreeSlice(unsafe.Slice((*byte)(memory), 1))
	}
}
