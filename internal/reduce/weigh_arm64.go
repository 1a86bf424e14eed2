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

// weighFast is weigh by the kernels of an instruction set, as far as they go, and returns how far that is. They are called by
// name, since what is passed to a function value escapes: weights and operands lie on the caller's stack.
func weighFast(isa isa, t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, w *weights, n int) (done int) {
	if isa == noVectors || w.mul != w.mul { // the kernels do not round a NaN that has any bits
		return 0
	}
	// As in sumPieces, one call reads no more than a piece, or two lines of each vector.
	most := max(piece/2/len(srcs)&^(line-1), line)
	for ; n-done > most; done += most {
		weighPiece(isa, t, dst, srcs, w, done, most)
	}
	if done < n {
		weighPiece(isa, t, dst, srcs, w, done, n-done)
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
