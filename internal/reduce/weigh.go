package reduce

import (
	"math/bits"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Averages and scaled sums of 16-bit floats. A sum of them may be too large for the type, or for
// float32, where their average is not. So operands are added and divided in float32, and nothing is
// rounded to the type but the result. What has to travel of an average, between hosts, is a share
// in the type: the sum of k operands, divided by the least power of two that is at least k. No
// share overflows, and each is at least half of the average. The division is exact unless the share
// is below the least normal number. There each addition is off by up to half a unit in the share's
// last place, which is less than one unit in the average's. A scaled sum whose factor is 1 or more
// travels as the plain sum: it overflows only where Sum does. Where the factor is less, 16 bits
// cannot hold both what it brings back into range and the least that there is: see Widen. Nor can 8
// bits hold a share, or a sum that is rounded once: those of 8-bit floats travel as float32, too.

// MeanAll computes: for i := range n { dst[i] = (srcs[0][i] + srcs[1][i] + ...) / len(srcs) } in
// float32, added in that order, divided, and rounded once, to nearest even. A sum of bfloat16 may
// be too large for float32: they are divided by a power of two before they are added, and less
// after.
//
// srcs has at least one vector of the 8-bit or 16-bit float t. dst may be one of them, but must not
// overlap them partly. No alignment is required.
func MeanAll(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	if t.Float8() {
		format8Of(t).all(dst, srcs, n, float32(len(srcs)))
		return
	}
	w := headroom(t, len(srcs))
	weigh(t, dst, srcs, &weights{each: [2]float32{w}, mul: 1, div: float32(len(srcs)) * w}, n)
}

// ScaledAll is MeanAll, for 16-bit floats, with a multiplication by factor in the place of the division.
func ScaledAll(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, factor float32, n int) {
	w := headroom(t, len(srcs))
	weigh(t, dst, srcs, &weights{each: [2]float32{w}, mul: factor, div: w}, n)
}

// AddShares combines the share of na operands at a with that of nb at b into the share of all of
// them at dst, which may be a or b. The share of one operand is that operand.
func AddShares(t op.Type, dst, a, b unsafe.Pointer, n int, na, nb int32) {
	e := exponent(int(na) + int(nb))
	srcs := [2]unsafe.Pointer{a, b}
	each := [2]float32{half(e - exponent(int(na))), half(e - exponent(int(nb)))}
	weigh(t, dst, srcs[:], &weights{each: each, two: 1, mul: 1, div: 1}, n)
}

// MeanOfShare makes the average of ranks operands of their share.
func MeanOfShare(t op.Type, dst unsafe.Pointer, n, ranks int) {
	srcs := [1]unsafe.Pointer{dst}
	weigh(t, dst, srcs[:], &weights{each: [2]float32{1}, mul: 1, div: float32(ranks) * half(exponent(ranks))}, n)
}

// weights say what is computed of a number of vectors: (w0*x0 + w1*x1 + ...)*mul/div in float32.
type weights struct {
	each     [2]float32 // the first is that of all vectors, or
	two      int        // where this is 1, each of two has its own
	mul, div float32
}

// exponent is that of the least power of two that is at least n.
func exponent(n int) int { return bits.Len(uint(n - 1)) }

// half is 2 to the -e, for e up to 126.
func half(e int) float32 { return 1 / float32(uint64(1)<<min(e, 63)) }

// headroom is what n elements of t are multiplied by so that float32 can hold their sum.
func headroom(t op.Type, n int) float32 {
	if t == op.Float16 {
		return 1
	}
	return half(exponent(n))
}

func weigh(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, w *weights, n int) {
	if w.two == 0 && len(srcs) == 1 && w.each[0] == 1 && w.mul == 1 && w.div == 1 && dst == srcs[0] {
		return
	}
	if done := weighFast(chosen.isa, t, dst, srcs, w, n); done < n {
		weighSpec(t, dst, srcs, w, done, n)
	}
}

// weighSpec is the specification, of the elements from first to n-1. Products are converted, so
// that no compiler fuses them with an addition.
func weighSpec(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, w *weights, first, n int) {
	from, to := F16ToF32, F32ToF16
	if t == op.BFloat16 {
		from, to = BF16ToF32, F32ToBF16
	}
	for i := first; i < n; i++ {
		sum := float32(w.each[0] * from(*(*uint16)(unsafe.Add(srcs[0], 2*i))))
		for _, src := range srcs[1:] {
			sum += float32(w.each[w.two] * from(*(*uint16)(unsafe.Add(src, 2*i))))
		}
		*(*uint16)(unsafe.Add(dst, 2*i)) = to(float32(sum*w.mul) / w.div)
	}
}
