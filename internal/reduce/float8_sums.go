package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Reductions of 8-bit floats. What is computed is computed in float32 and rounded once, as F32ToE4M3 does it: a result
// beyond the largest number is that number, as in NCCL's kernels (src/device/reduce_kernel.h, whose results are made of
// a half by the saturating constructors of cuda_fp8.h). For sums and products of two operands NCCL's bits are the same
// but for NaNs: a half holds what decides how they are rounded.

// reductions are the kernels of an 8-bit float. They are the same on every level.
func (f *format8) reductions() [op.Ops]Func {
	return [op.Ops]Func{op.Sum: f.sum, op.Prod: f.prod, op.Min: f.min, op.Max: f.max, op.Avg: f.sum}
}

func (f *format8) sum(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint8](dst, a, b, n)
	for i := range d {
		d[i] = f.encode(f.values[x[i]] + f.values[y[i]])
	}
}

func (f *format8) prod(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint8](dst, a, b, n)
	for i := range d {
		d[i] = f.encode(f.values[x[i]] * f.values[y[i]])
	}
}

func (f *format8) min(dst, a, b unsafe.Pointer, n int) { minBits(dst, a, b, n, f.above) }
func (f *format8) max(dst, a, b unsafe.Pointer, n int) { maxBits(dst, a, b, n, f.above) }

func (f *format8) scale(dst unsafe.Pointer, n int, ranks int) {
	d := scaled[uint8](dst, n, ranks)
	for i := range d {
		d[i] = f.encode(f.values[d[i]] / float32(ranks))
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
		for i := range s {
			s[i] /= by
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
	for i, x := range src {
		dst[i] = f.encode(x)
	}
}
