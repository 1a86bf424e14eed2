//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include "goccl.h"
*/
import "C"

import (
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// views make a view of n elements of each type.
var views = [...]func(at unsafe.Pointer, n int) ccl.Buf{
	C.GOCCL_INT8: viewOf[int8], C.GOCCL_UINT8: viewOf[uint8], C.GOCCL_INT16: viewOf[int16], C.GOCCL_UINT16: viewOf[uint16],
	C.GOCCL_INT32: viewOf[int32], C.GOCCL_UINT32: viewOf[uint32], C.GOCCL_INT64: viewOf[int64],
	C.GOCCL_UINT64:  viewOf[uint64],
	C.GOCCL_FLOAT16: viewOf[ccl.Float16], C.GOCCL_BFLOAT16: viewOf[ccl.BFloat16], C.GOCCL_FLOAT32: viewOf[float32],
	C.GOCCL_FLOAT64:    viewOf[float64],
	C.GOCCL_FLOAT8E4M3: viewOf[ccl.Float8E4M3], C.GOCCL_FLOAT8E5M2: viewOf[ccl.Float8E5M2],
	C.GOCCL_BOOL: viewOf[bool], C.GOCCL_COMPLEX64: viewOf[complex64], C.GOCCL_COMPLEX128: viewOf[complex128],
}

func viewOf[T ccl.Element](at unsafe.Pointer, n int) ccl.Buf {
	return ccl.BufOf(unsafe.Slice((*T)(at), n))
}

// view is n elements at an address, of a type that there is.
func view(typ C.int32_t, at unsafe.Pointer, n int) ccl.Buf {
	if typ == C.GOCCL_NONE {
		return ccl.Buf{}
	}
	return views[typ](at, n)
}
