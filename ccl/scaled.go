package ccl

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// The operators that Scaled makes are numbers of a Comm: places in its list of factors.
const (
	firstScaled = Op(op.Scaled)
	noScaled    = Op(255) // of one factor too many
)

// Scaled returns an operator that sums what the ranks have, multiplied by factor, as
// ncclRedOpCreatePreMulSum makes one: 1/n for an average, or the inverse of a loss scale. It is for
// the floating-point types of 16 bits and more, and valid on c alone. All ranks must call with the
// same factor, which is compared as the count is. The same factor gives the same operator; a Comm
// has room for 239.
//
// NCCL and RCCL multiply what each rank gives, from 2.11 on, the CPU engine the sum, of 16-bit
// floats before it is rounded: the same but for rounding, and for what is too large to be summed in
// float32 or float64. The libraries oneCCL and MPI have no such operator: a call is ErrUnsupported.
func (c *Comm) Scaled(factor float64) Op {
	if c.isNil() {
		return noScaled
	}
	c.calling.count++
	return c.calling.factors.op(factor)
}

// factors are what the operators that Scaled has made multiply by.
type factors []float64

// op is the operator of factor, which may be new. All NaNs are one factor, and 0 and -0 are two.
func (f *factors) op(factor float64) Op {
	if math.IsNaN(factor) {
		factor = math.NaN()
	}
	bits := math.Float64bits(factor) // which the ranks compare
	i := slices.IndexFunc(*f, func(x float64) bool { return math.Float64bits(x) == bits })
	if i < 0 {
		if i = len(*f); i == int(noScaled-firstScaled) {
			return noScaled
		}
		*f = append(*f, factor)
	}
	return firstScaled + Op(i)
}

// of is what op, which is firstScaled or more and the Comm's, multiplies elements of type t by.
func (f factors) of(t op.Type, o op.Op) (float64, error) {
	switch i := int(o - op.Scaled); {
	case Op(o) == noScaled:
		return 0, fmt.Errorf("too many factors: a Comm has room for %d", int(noScaled-firstScaled))
	case i >= len(f):
		return 0, fmt.Errorf("there is no operator %d here: an operator that Scaled made is valid only on its own Comm", o)
	case !op.Reduces(t, o):
		return 0, fmt.Errorf("Scaled multiplies floating-point elements of 16 bits and more, not %s", t)
	default:
		return f[i], nil
	}
}

// scale has k, a call whose operator is firstScaled or more, multiply its sum.
func (f factors) scale(k *call.Call) {
	multiply, factor := reduce.Multiply(k.Type), f[k.Op-op.Scaled]
	k.Times, k.Factor, k.Scale = float32(factor), factor, func(p unsafe.Pointer, n, _ int) { multiply(p, n, factor) }
}

// weigh has k, an average of floats of 8 or 16 bits or a scaled sum of the latter, end in float32 before it is rounded.
func weigh(k *call.Call) {
	w := &means[k.Type]
	if k.Op.Scales() {
		w = scaledBy(k.Type, rounded(k.Type, k.Factor))
	}
	k.Weighs, k.Scale, k.Both = true, nil, nil
	k.Fold, k.Stream, k.All, k.Share, k.Last, k.Wide = w.fold, w.fold, w.all, w.share, w.last, w.wide
}

// weights are how an average or a scaled sum of small floats is computed: of two operands, of all,
// and by shares, or in 32 bits between hosts, see op.Call.
type weights struct {
	fold  func(dst, a, b unsafe.Pointer, n int)
	all   func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int)
	share func(to, a, b unsafe.Pointer, n int, na, nb int32)
	last  func(p unsafe.Pointer, n, ranks int)
	wide  *op.Wide
}

var means = [op.Types]weights{op.Float16: meanOf(op.Float16), op.BFloat16: meanOf(op.BFloat16),
	op.Float8E4M3: meanOf8(op.Float8E4M3), op.Float8E5M2: meanOf8(op.Float8E5M2)}

func meanOf(t op.Type) weights {
	return weights{
		func(dst, a, b unsafe.Pointer, n int) {
			srcs := [2]unsafe.Pointer{a, b}
			reduce.MeanAll(t, dst, srcs[:], n)
		},
		func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int) { reduce.MeanAll(t, dst, srcs, n) },
		func(to, a, b unsafe.Pointer, n int, na, nb int32) { reduce.AddShares(t, to, a, b, n/t.Size(), na, nb) },
		func(p unsafe.Pointer, n, ranks int) { reduce.MeanOfShare(t, p, n/t.Size(), ranks) },
		nil,
	}
}

// meanOf8 is meanOf an 8-bit float, which has too few bits for shares. The mean of one rank's elements is that.
func meanOf8(t op.Type) weights {
	w := meanOf(t)
	w.share, w.last = nil, func(unsafe.Pointer, int, int) {}
	wide := *sums8[t]
	wide.To = func(dst, sums unsafe.Pointer, n, ranks int) {
		reduce.Scale(op.Float32)(sums, n, ranks)
		reduce.Narrow(t, dst, sums, 1, n, ranks)
	}
	w.wide = &wide
	return w
}

// sums8 are how sums of 8-bit floats are made between hosts, so that they are rounded once.
var sums8 = [op.Types]*op.Wide{op.Float8E4M3: sumOf8(op.Float8E4M3), op.Float8E5M2: sumOf8(op.Float8E5M2)}

func sumOf8(t op.Type) *op.Wide {
	return &op.Wide{
		Fold: reduce.For(op.Float32, op.Sum),
		From: func(dst, src unsafe.Pointer, n, ranks int) { reduce.Widen(t, dst, src, n, ranks) },
		To:   func(dst, sums unsafe.Pointer, n, ranks int) { reduce.Narrow(t, dst, sums, 1, n, ranks) },
	}
}

func scaledBy(t op.Type, factor float32) *weights {
	sum, size := reduce.For(t, op.Sum), t.Size()
	w := &weights{
		func(dst, a, b unsafe.Pointer, n int) {
			srcs := [2]unsafe.Pointer{a, b}
			reduce.ScaledAll(t, dst, srcs[:], factor, n)
		},
		func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int) { reduce.ScaledAll(t, dst, srcs, factor, n) },
		func(to, a, b unsafe.Pointer, n int, _, _ int32) { sum(to, a, b, n/size) },
		func(p unsafe.Pointer, n, _ int) {
			srcs := [1]unsafe.Pointer{p}
			reduce.ScaledAll(t, p, srcs[:], factor, n/size)
		},
		nil,
	}
	if -1 < factor && factor < 1 {
		w.wide = &op.Wide{
			Fold: reduce.For(op.Float32, op.Sum),
			From: func(dst, src unsafe.Pointer, n, ranks int) { reduce.Widen(t, dst, src, n, ranks) },
			To:   func(dst, sums unsafe.Pointer, n, ranks int) { reduce.Narrow(t, dst, sums, factor, n, ranks) },
		}
	}
	return w
}

// rounded is factor as the 16-bit float t holds it.
func rounded(t op.Type, factor float64) float32 {
	if t == op.Float16 {
		return reduce.F16ToF32(reduce.F32ToF16(float32(factor)))
	}
	return reduce.BF16ToF32(reduce.F32ToBF16(float32(factor)))
}

// kernels makes k a call of a's kind, type, operator and root, with what follows from these.
func (a *args) kernels(k *call.Call, scaled factors) {
	t, o := op.Type(a.typ), op.Op(a.op)
	*k = call.Call{Head: op.Head{Record: call.Record{Kind: a.kind, Type: t, Op: o, Root: int32(a.root),
		State: uint8(Running)}, To: a.to}, Elem: t.Size()}
	if !a.kind.Reduces() {
		return
	}
	if o.Scales() {
		scaled.scale(k)
		o = op.Sum
	}
	k.Fold, k.Stream, k.Both, k.All = reduce.For(t, o), reduce.ForStream(t, o), reduce.ForBoth(t, o),
		reduce.ForSumAll(t, o)
	switch {
	case (t.Half() || t.Float8()) && (o == op.Avg || k.Op.Scales()):
		weigh(k)
	case o == op.Sum:
		k.Wide = sums8[t]
	case o == op.Avg:
		k.Scale = reduce.Scale(t)
	}
}
