package reduce

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Averages and scaled sums of 16-bit floats. A sum of them may be too large for the type, or for float32, where their average
// is not. So operands are added and divided in float32, and nothing is rounded to the type but the result. What has to travel
// in the type, between hosts, is a share: the sum of k operands, divided by a power of two.
//
// That power is the least that is at least k, so that no share overflows, or the least that is at least 1/|factor|, if that is
// less. A share is therefore at least half of what it becomes, and at most that. A factor of 1 or more leaves the plain sum: it
// may overflow, but only where the result does or Sum would. The division is exact unless the share is below the least normal number. There each addition
// is off by up to half a unit in the share's last place, which is less than one unit in the result's.

// MeanAll computes: for i := range n { dst[i] = (srcs[0][i] + srcs[1][i] + ...) / len(srcs) } in float32, added in that order,
// divided, and rounded once, to nearest even. A sum of bfloat16 may be too large for float32: they are divided by a power of
// two before they are added, and less after.
//
// srcs has at least one vector of the 16-bit float t. dst may be one of them, but must not overlap them partly. No alignment
// is required.
func MeanAll(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	w := headroom(t, len(srcs))
	weigh(t, dst, srcs, &weights{each: [2]float32{w}, mul: 1, div: float32(len(srcs)) * w}, n)
}

// ScaledAll is MeanAll with a multiplication by factor in the place of the division.
func ScaledAll(t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, factor float32, n int) {
	w := headroom(t, len(srcs))
	weigh(t, dst, srcs, &weights{each: [2]float32{w}, mul: factor, div: w}, n)
}

// AddShares combines the share of na operands at a with that of nb at b into the share of all of them at dst, which may be a or
// b. The share of one operand is that operand. A share is divided by 2 to the power most at most: see MostOfShare.
func AddShares(t op.Type, dst, a, b unsafe.Pointer, n int, na, nb int32, most int) {
	e := divided(int(na)+int(nb), most)
	srcs := [2]unsafe.Pointer{a, b}
	each := [2]float32{half(e - divided(int(na), most)), half(e - divided(int(nb), most))}
	weigh(t, dst, srcs[:], &weights{each: each, two: 1, mul: 1, div: 1}, n)
}

// MeanOfShare makes the average of ranks operands of their share, whose division has no limit.
func MeanOfShare(t op.Type, dst unsafe.Pointer, n, ranks int) {
	srcs := [1]unsafe.Pointer{dst}
	weigh(t, dst, srcs[:], &weights{each: [2]float32{1}, mul: 1, div: float32(ranks) * half(exponent(ranks))}, n)
}

// ScaledOfShare makes the sum of ranks operands, multiplied by factor, of their share, which MostOfShare limits.
func ScaledOfShare(t op.Type, dst unsafe.Pointer, factor float32, n, ranks int) {
	srcs := [1]unsafe.Pointer{dst}
	rest := factor / half(divided(ranks, MostOfShare(factor))) // exact, and below 2 if |factor| is below 1
	weigh(t, dst, srcs[:], &weights{each: [2]float32{1}, mul: rest, div: 1}, n)
}

// Unlimited is no limit to what a share is divided by, other than its number of operands: an average's.
const Unlimited = math.MaxInt

// MostOfShare is the exponent of the least power of two that is at least 1/|factor|: 0 for a factor of 1 and more.
func MostOfShare(factor float32) int {
	switch f := math.Abs(float64(factor)); {
	case f == 0:
		return Unlimited
	case f < 1:
		_, e := math.Frexp(f) // f is in [2^(e-1), 2^e)
		return 1 - e
	}
	return 0
}

// divided is the exponent of what the share of n operands is divided by.
func divided(n, most int) int { return min(exponent(n), most) }

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

// weighSpec is the specification, of the elements from first to n-1. Products are converted, so that no compiler fuses them
// with an addition.
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
