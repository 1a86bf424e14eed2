package call

import (
	"unsafe"

	"github.com/goccl/goccl/internal/reduce"
)

// A call that Weighs has no Scale: SumAll, or Fold and Stream for the two operands of two ranks, end what they compute. Between
// hosts partial results are shares, which Share adds and Last ends.

// SumsAll reports whether k is such a sum.
func (k *Call) SumsAll(n int) bool { return n > 2 && k.All != nil }

// SumAll adds all of srcs, each of n bytes, and forgets where they were.
func (k *Call) SumAll(to unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	switch {
	case k.Weighs && k.Op == uint8(reduce.Avg):
		reduce.MeanAll(k.Half, to, srcs, n/k.Elem)
	case k.Weighs:
		reduce.ScaledAll(k.Half, to, srcs, k.Weight, n/k.Elem)
	default:
		k.All(to, srcs, n/k.Elem)
	}
	if k.Scale != nil {
		k.Scale(to, n/k.Elem, len(srcs))
	}
	clear(srcs)
}

// Share makes of the share of na operands at a, and that of nb at b, the share of both: n bytes.
func (k *Call) Share(to, a, b unsafe.Pointer, n int, na, nb int32) {
	reduce.AddShares(k.Half, to, a, b, n/k.Elem, na, nb)
}

// Last makes of n bytes that hold the share of all ranks' operands what k promises.
func (k *Call) Last(p unsafe.Pointer, n, ranks int) {
	if k.Op == uint8(reduce.Avg) {
		reduce.MeanOfShare(k.Half, p, n/k.Elem, ranks)
	} else {
		reduce.ScaledOfShare(k.Half, p, k.Weight, n/k.Elem, ranks)
	}
}
