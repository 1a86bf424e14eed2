package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// SumAll computes: for i := range n { dst[i] = srcs[0][i] + srcs[1][i] + ... } in float32, in that
// order, and rounds once, to nearest even.
//
// srcs has at least one vector. dst may be one of them, but must not overlap them partly. No alignment is required.
type SumAll func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int)

// ForSumAll is the sum of any number of vectors of a float of 16 or 8 bits, for Sum and for Avg, of
// which Scale does the rest. It is nil for other types, where adding one vector after another, by For, is
// no less exact, and for other operations.
func ForSumAll(t op.Type, o op.Op) SumAll {
	if t >= op.Types || o != op.Sum && o != op.Avg {
		return nil
	}
	return chosen.sumAll[t]
}

// sumAllFrom is SumAll of n elements from element first on.
type sumAllFrom func(dst unsafe.Pointer, srcs []unsafe.Pointer, first, n int)

func (f sumAllFrom) whole(dst unsafe.Pointer, srcs []unsafe.Pointer, n int) { f(dst, srcs, 0, n) }

// sumBlock is how many sums the specification keeps at a time.
const sumBlock = 256

func sumAllF16(dst unsafe.Pointer, srcs []unsafe.Pointer, first, n int) {
	var sums [sumBlock]float32
	for ; n > 0; first, n = first+sumBlock, n-sumBlock {
		s := sums[:min(sumBlock, n)]
		for i, x := range unsafe.Slice((*uint16)(unsafe.Add(srcs[0], 2*first)), len(s)) {
			s[i] = F16ToF32(x)
		}
		for _, src := range srcs[1:] {
			for i, x := range unsafe.Slice((*uint16)(unsafe.Add(src, 2*first)), len(s)) {
				s[i] += F16ToF32(x)
			}
		}
		FromFloat32(op.Float16, unsafe.Slice((*uint16)(unsafe.Add(dst, 2*first)), len(s)), s)
	}
}

func sumAllBF16(dst unsafe.Pointer, srcs []unsafe.Pointer, first, n int) {
	var sums [sumBlock]float32
	for ; n > 0; first, n = first+sumBlock, n-sumBlock {
		s := sums[:min(sumBlock, n)]
		for i, x := range unsafe.Slice((*uint16)(unsafe.Add(srcs[0], 2*first)), len(s)) {
			s[i] = BF16ToF32(x)
		}
		for _, src := range srcs[1:] {
			for i, x := range unsafe.Slice((*uint16)(unsafe.Add(src, 2*first)), len(s)) {
				s[i] += BF16ToF32(x)
			}
		}
		FromFloat32(op.BFloat16, unsafe.Slice((*uint16)(unsafe.Add(dst, 2*first)), len(s)), s)
	}
}
