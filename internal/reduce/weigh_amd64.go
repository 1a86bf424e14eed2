//go:build !noasm

package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// The instruction sets that weigh has kernels for.
const (
	noVectors isa = iota
	avx2Vectors
	avx512Vectors
)

// weighable is how many of n elements the kernels of an instruction set take.
func weighable(isa isa, _ *weights, n int) int {
	switch isa {
	case noVectors:
		return 0
	case avx2Vectors:
		return n &^ (avx2Step/2 - 1)
	}
	return n
}

// weighPiece is one call of a kernel. It is not inlined: see call.
//
//go:noinline
func weighPiece(isa isa, t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, w *weights, first, n int) {
	list, each, ends := unsafe.Pointer(unsafe.SliceData(srcs)), unsafe.Pointer(&w.each), 1
	if w.mul == 1 && w.div == 1 {
		ends = 0
	}
	switch {
	case isa == avx2Vectors && t == op.Float16:
		weighAllFloat16AVX2(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	case isa == avx2Vectors:
		weighAllBFloat16AVX2(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	case t == op.Float16:
		weighAllFloat16AVX512(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	default:
		weighAllBFloat16AVX512(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	}
}
