//go:build (amd64 || arm64) && !noasm

package reduce

import "unsafe"

// sumKernel is SumAll in assembly: of count vectors, each from byte at on.
type sumKernel func(dst, srcs unsafe.Pointer, count, at, n int)

// sumPieces makes a SumAll of a kernel, one call of which reads no more than a piece, or two lines
// of each vector. step is as in pieces, and rest the specification.
func sumPieces(step int, rest sumAllFrom, k sumKernel) SumAll {
	whole := wholeSteps(step, 2)
	return func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int) {
		list := unsafe.Pointer(unsafe.SliceData(srcs))
		most := max(piece/2/len(srcs)&^(line-1), line)
		m, first := n&whole, 0
		for ; m-first > most; first += most {
			callSum(k, dst, list, len(srcs), 2*first, most)
		}
		if m > first {
			k(dst, list, len(srcs), 2*first, m-first)
		}
		if m < n {
			rest(dst, srcs, m, n-m)
		}
	}
}

// callSum is call for sumPieces.
//
//go:noinline
func callSum(k sumKernel, dst, srcs unsafe.Pointer, count, at, n int) { k(dst, srcs, count, at, n) }
