//go:build !noasm

package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// The instruction sets that weigh has kernels for.
const (
	noVectors isa = iota
	neonVectors
	neonBF16Vectors
)

// weighable is how many of n elements the kernels of an instruction set take: none by a factor that
// is a NaN, which has any bits and would be rounded.
func weighable(isa isa, w *weights, n int) int {
	if isa == noVectors || w.mul != w.mul {
		return 0
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
	case t == op.Float16:
		weighAllFloat16NEON(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	case isa == neonVectors:
		weighAllBFloat16NEON(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	default:
		weighAllBFloat16BF16(dst, list, len(srcs), 2*first, n, each, 4*w.two, ends, w.mul, w.div)
	}
}
