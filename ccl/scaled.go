package ccl

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/reduce"
)

// The operators that Scaled makes are numbers of a Comm: places in its list of factors.
const (
	firstScaled Op = call.Scaled
	noScaled    Op = 255 // of one factor too many
)

// Scaled returns an operator that sums what the ranks have, multiplied by factor, as ncclRedOpCreatePreMulSum makes one: 1/n
// for an average, or the inverse of a loss scale. It is for the floating-point types of 16 bits and more, and valid on
// c alone. All ranks must call with the same factor, which is compared as the count is. The same factor gives the same operator;
// a Comm has room for 239.
//
// NCCL and RCCL multiply what each rank gives, from 2.11 on, the CPU engine the sum, of 16-bit floats before it is rounded: the
// same but for rounding, and for what is too large to be summed in float32 or float64. The libraries oneCCL and MPI have no such operator: a call is ErrUnsupported.
func (c *Comm) Scaled(factor float64) Op {
	if c.none() {
		return noScaled
	}
	c.calling.count++
	return c.calling.factors.op(factor)
}

// factors are what the operators that Scaled has made multiply by.
type factors []float64

// op is the operator of factor, which may be new.
func (f *factors) op(factor float64) Op {
	i := slices.Index(*f, factor)
	if i < 0 {
		if i = len(*f); i == int(noScaled-firstScaled) {
			return noScaled
		}
		*f = append(*f, factor)
	}
	return firstScaled + Op(i)
}

// of is what op, which is firstScaled or more and the Comm's, multiplies elements of type t by.
func (f factors) of(t Type, op Op) (float64, error) {
	switch i := int(op - firstScaled); {
	case op == noScaled:
		return 0, fmt.Errorf("too many factors: a Comm has room for %d", int(noScaled-firstScaled))
	case i >= len(f):
		return 0, fmt.Errorf("there is no operator %d here: an operator that Scaled made is valid only on its own Comm", op)
	case reduce.Multiply(t.kernel()) == nil:
		return 0, fmt.Errorf("Scaled multiplies floating-point elements of 16 bits and more, not %s", t)
	default:
		return f[i], nil
	}
}

// scale has k, a call whose operator is firstScaled or more, multiply its sum.
func (f factors) scale(k *call.Call) {
	multiply, factor := reduce.Multiply(Type(k.Type).kernel()), f[Op(k.Op)-firstScaled]
	k.Times, k.Factor, k.Scale = float32(factor), factor, func(p unsafe.Pointer, n, _ int) { multiply(p, n, factor) }
}

// weigh has k, an average or a scaled sum of the 16-bit float t, end in float32 before it is rounded.
func weigh(k *call.Call, t reduce.Type) {
	k.Weighs, k.Half, k.Scale, k.Both = true, t, nil, nil
	switch {
	case Op(k.Op) == Avg && t == reduce.Float16:
		k.Fold = meanFloat16
	case Op(k.Op) == Avg:
		k.Fold = meanBFloat16
	default:
		w := rounded(t, k.Factor)
		k.Weight, k.Fold = w, func(dst, a, b unsafe.Pointer, n int) {
			srcs := [2]unsafe.Pointer{a, b}
			reduce.ScaledAll(t, dst, srcs[:], w, n)
		}
	}
	k.Stream = k.Fold
}

func meanFloat16(dst, a, b unsafe.Pointer, n int) {
	srcs := [2]unsafe.Pointer{a, b}
	reduce.MeanAll(reduce.Float16, dst, srcs[:], n)
}

func meanBFloat16(dst, a, b unsafe.Pointer, n int) {
	srcs := [2]unsafe.Pointer{a, b}
	reduce.MeanAll(reduce.BFloat16, dst, srcs[:], n)
}

// rounded is factor as the 16-bit float t holds it.
func rounded(t reduce.Type, factor float64) float32 {
	if t == reduce.Float16 {
		return reduce.F16ToF32(reduce.F32ToF16(float32(factor)))
	}
	return reduce.BF16ToF32(reduce.F32ToBF16(float32(factor)))
}

// engineOp is op for an engine beside the CPU engine.
func engineOp(op Op) engine.Op {
	if op >= firstScaled {
		return engine.Scaled
	}
	return engine.Op(op)
}
