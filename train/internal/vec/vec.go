// Package vec is the arithmetic of training on Bufs of host memory, of float32, float64, bfloat16
// and float16. The Bufs of a call have one length, which the caller sees to. Nothing is allocated.
package vec

import (
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/train/internal/raw"
)

func f32(b ccl.Buf) []float32       { s, _ := ccl.SliceOf[float32](b); return s }
func f64(b ccl.Buf) []float64       { s, _ := ccl.SliceOf[float64](b); return s }
func bf16(b ccl.Buf) []ccl.BFloat16 { s, _ := ccl.SliceOf[ccl.BFloat16](b); return s }

func f16(b ccl.Buf) []ccl.Float16 { s, _ := ccl.SliceOf[ccl.Float16](b); return s }

// Holds reports whether b is host memory of a type that SumSquares and Scale take.
func Holds(b ccl.Buf) bool {
	return b.Len() == 0 || len(f32(b))+len(f64(b))+len(bf16(b))+len(f16(b)) > 0
}

// Zero sets b to zeros.
func Zero(b ccl.Buf) {
	s, _ := raw.Bytes(b)
	clear(s)
}

// Add adds src, of dst's type, to dst.
func Add(dst, src ccl.Buf) {
	switch dst.Type() {
	case ccl.TypeFloat32:
		reduce.Add(op.Float32, f32(dst), f32(src))
	case ccl.TypeFloat64:
		reduce.Add(op.Float64, f64(dst), f64(src))
	case ccl.TypeBFloat16:
		reduce.Add(op.BFloat16, bf16(dst), bf16(src))
	case ccl.TypeFloat16:
		reduce.Add(op.Float16, f16(dst), f16(src))
	}
}

// Scale multiplies b by a number, rounded to b's type, or to float32 for bfloat16 and float16.
func Scale(b ccl.Buf, by float64) {
	x := float32(by)
	for i, s := 0, f32(b); i < len(s); i++ {
		s[i] *= x
	}
	for i, s := 0, f64(b); i < len(s); i++ {
		s[i] *= by
	}
	for i, s := 0, bf16(b); i < len(s); i++ {
		s[i] = ccl.ToBFloat16(s[i].Float32() * x)
	}
	for i, s := 0, f16(b); i < len(s); i++ {
		s[i] = ccl.ToFloat16(s[i].Float32() * x)
	}
}

// Divide divides b by n, as an average over n ranks does.
func Divide(b ccl.Buf, n int) {
	if s, err := raw.Bytes(b); err == nil && Holds(b) {
		reduce.Scale(op.Type(b.Type()))(unsafe.Pointer(unsafe.SliceData(s)), b.Len(), n)
	}
}

// Convert sets dst to src, each of any of the types. What does not fit is rounded to nearest even; float64 goes to
// the types of 16 bits by way of float32.
func Convert(dst, src ccl.Buf) {
	switch {
	case dst.Type() == src.Type():
		to, _ := raw.Bytes(dst)
		from, _ := raw.Bytes(src)
		copy(to, from)
	case dst.Type() == ccl.TypeFloat32 && src.Type() == ccl.TypeBFloat16:
		reduce.ToFloat32(op.BFloat16, f32(dst), bf16(src))
	case dst.Type() == ccl.TypeBFloat16 && src.Type() == ccl.TypeFloat32:
		reduce.FromFloat32(op.BFloat16, bf16(dst), f32(src))
	case dst.Type() == ccl.TypeFloat32 && src.Type() == ccl.TypeFloat16:
		reduce.ToFloat32(op.Float16, f32(dst), f16(src))
	case dst.Type() == ccl.TypeFloat16 && src.Type() == ccl.TypeFloat32:
		reduce.FromFloat32(op.Float16, f16(dst), f32(src))
	case dst.Type() == ccl.TypeFloat32 && src.Type() == ccl.TypeFloat64:
		each(f32(dst), f64(src), func(x float64) float32 { return float32(x) })
	case dst.Type() == ccl.TypeFloat64 && src.Type() == ccl.TypeFloat32:
		each(f64(dst), f32(src), func(x float32) float64 { return float64(x) })
	case dst.Type() == ccl.TypeFloat64 && src.Type() == ccl.TypeBFloat16:
		each(f64(dst), bf16(src), func(x ccl.BFloat16) float64 { return float64(x.Float32()) })
	case dst.Type() == ccl.TypeBFloat16 && src.Type() == ccl.TypeFloat64:
		each(bf16(dst), f64(src), func(x float64) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) })
	case dst.Type() == ccl.TypeFloat64 && src.Type() == ccl.TypeFloat16:
		each(f64(dst), f16(src), func(x ccl.Float16) float64 { return float64(x.Float32()) })
	case dst.Type() == ccl.TypeFloat16 && src.Type() == ccl.TypeFloat64:
		each(f16(dst), f64(src), func(x float64) ccl.Float16 { return ccl.ToFloat16(float32(x)) })
	case dst.Type() == ccl.TypeBFloat16 && src.Type() == ccl.TypeFloat16:
		each(bf16(dst), f16(src), func(x ccl.Float16) ccl.BFloat16 { return ccl.ToBFloat16(x.Float32()) })
	case dst.Type() == ccl.TypeFloat16 && src.Type() == ccl.TypeBFloat16:
		each(f16(dst), bf16(src), func(x ccl.BFloat16) ccl.Float16 { return ccl.ToFloat16(x.Float32()) })
	}
}

// each sets the elements of dst to what f makes of those of src.
func each[D, S any](dst []D, src []S, f func(S) D) {
	for i, x := range src {
		dst[i] = f(x)
	}
}

// SumSquares is the sum of the squares of b in float64, the same bits on every machine.
func SumSquares(b ccl.Buf) float64 {
	switch b.Type() {
	case ccl.TypeFloat32:
		return reduce.SumSquares(f32(b))
	case ccl.TypeFloat64:
		return reduce.SumSquares(f64(b))
	}
	return squares(bf16(b)) + squares(f16(b)) // of which one is 0
}

func squares[T interface{ Float32() float32 }](s []T) (sum float64) {
	for _, x := range s {
		v := float64(x.Float32())
		sum += float64(v * v) // converted, so that no compiler fuses it with the addition
	}
	return sum
}
