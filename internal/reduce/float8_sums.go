package reduce

import (
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Reductions of 8-bit floats. What is computed is computed in float32 and rounded once, as F32ToE4M3 does it: a result
// beyond the largest number is that number, as in NCCL's kernels (src/device/reduce_kernel.h, whose results are made of
// a half by the saturating constructors of cuda_fp8.h). For sums and products of two operands NCCL's bits are the same
// but for NaNs: a half holds what decides how they are rounded.

// reductions are the kernels of an 8-bit float. They are the same on every level.
func (f *format8) reductions() [op.Ops]Func {
	sum := f.sums.reduce
	return [op.Ops]Func{op.Sum: sum, op.Prod: f.prods.reduce, op.Min: f.min, op.Max: f.max, op.Avg: sum}
}

// pairs is what an operation makes of any two 8-bit floats, the first in the upper byte: 64 KiB, from its first use on.
type pairs func() *[1 << 16]uint8

func (f *format8) table(of func(x, y float32) float32) pairs {
	return sync.OnceValue(func() *[1 << 16]uint8 {
		t := new([1 << 16]uint8)
		for i := range t {
			t[i] = f.encode(of(f.values[i>>8], f.values[i&0xff]))
		}
		return t
	})
}

func (p pairs) reduce(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint8](dst, a, b, n)
	t := p()
	for i := range d {
		d[i] = t[uint16(x[i])<<8|uint16(y[i])]
	}
}

func (f *format8) min(dst, a, b unsafe.Pointer, n int) { minBits(dst, a, b, n, f.above) }
func (f *format8) max(dst, a, b unsafe.Pointer, n int) { maxBits(dst, a, b, n, f.above) }

func (f *format8) scale(dst unsafe.Pointer, n int, ranks int) {
	d, codes := scaled[uint8](dst, n, ranks), f.codes()
	for i := range d {
		d[i] = codes[oddUpper(f.values[d[i]]/float32(ranks))]
	}
}

func (f *format8) sumAll(dst unsafe.Pointer, srcs []unsafe.Pointer, n int) { f.all(dst, srcs, n, 1) }

// all is SumAll, with sums that are divided before they are rounded.
func (f *format8) all(dst unsafe.Pointer, srcs []unsafe.Pointer, n int, by float32) {
	var sums [sumBlock]float32
	for first := 0; first < n; first += sumBlock {
		s := sums[:min(sumBlock, n-first)]
		for k, src := range srcs {
			x := unsafe.Slice((*uint8)(unsafe.Add(src, first)), len(s))
			if k == 0 {
				f.decode(s, x)
				continue
			}
			for i, b := range x {
				s[i] += f.values[b]
			}
		}
		if by != 1 {
			for i := range s {
				s[i] /= by
			}
		}
		f.encodeAll(unsafe.Slice((*uint8)(unsafe.Add(dst, first)), len(s)), s)
	}
}

func (f *format8) decode(dst []float32, src []uint8) {
	for i, b := range src {
		dst[i] = f.values[b]
	}
}

func (f *format8) encodeAll(dst []uint8, src []float32) {
	codes := f.codes()
	for i, x := range src {
		dst[i] = codes[oddUpper(x)]
	}
}
