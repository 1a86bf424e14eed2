package reduce

import (
	"math/bits"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// scaled are the n elements at dst, or none if ranks leave them as they are.
func scaled[T any](dst unsafe.Pointer, n int, ranks int) []T {
	if ranks < 2 {
		return nil
	}
	return unsafe.Slice((*T)(dst), n)
}

func scaleFloat[T float](dst unsafe.Pointer, n int, ranks int) {
	d := scaled[T](dst, n, ranks)
	for i := range d {
		d[i] /= T(ranks)
	}
}

func scaleF16(dst unsafe.Pointer, n int, ranks int) {
	d := scaled[uint16](dst, n, ranks)
	for i := range d {
		d[i] = F32ToF16(F16ToF32(d[i]) / float32(ranks))
	}
}

func scaleBF16(dst unsafe.Pointer, n int, ranks int) {
	d := scaled[uint16](dst, n, ranks)
	for i := range d {
		d[i] = F32ToBF16(BF16ToF32(d[i]) / float32(ranks))
	}
}

// Multiply is the end of a scaled sum: for i := range n { dst[i] *= factor }, with the factor
// rounded to the type; half and bfloat16 in float32, and then rounded once. It is nil for what is
// no float of 16 bits or more.
func Multiply(t op.Type) func(dst unsafe.Pointer, n int, factor float64) {
	switch t {
	case op.Float16:
		return func(dst unsafe.Pointer, n int, factor float64) {
			f := F16ToF32(F32ToF16(float32(factor)))
			for i, x := range unsafe.Slice((*uint16)(dst), n) {
				*(*uint16)(unsafe.Add(dst, 2*i)) = F32ToF16(F16ToF32(x) * f)
			}
		}
	case op.BFloat16:
		return func(dst unsafe.Pointer, n int, factor float64) {
			f := BF16ToF32(F32ToBF16(float32(factor)))
			for i, x := range unsafe.Slice((*uint16)(dst), n) {
				*(*uint16)(unsafe.Add(dst, 2*i)) = F32ToBF16(BF16ToF32(x) * f)
			}
		}
	case op.Float32:
		return multiply[float32]
	case op.Float64:
		return multiply[float64]
	}
	return nil
}

func multiply[T float](dst unsafe.Pointer, n int, factor float64) {
	d, f := unsafe.Slice((*T)(dst), n), T(factor)
	for i := range d {
		d[i] *= f
	}
}

func scaleInt64(dst unsafe.Pointer, n int, ranks int) {
	d := scaled[int64](dst, n, ranks)
	for i := range d {
		d[i] /= int64(ranks)
	}
}

func scaleUint64(dst unsafe.Pointer, n int, ranks int) {
	d := scaled[uint64](dst, n, ranks)
	for i := range d {
		d[i] /= uint64(ranks)
	}
}

// reciprocal is 2^64 / ranks, rounded up. The upper half of its product with any
// number of 32 bits is that number divided by ranks (Lemire, Kaser and Kurz, Faster
// remainder by direct computation, 2019), and takes a quarter of a division's time.
func reciprocal(ranks int) uint64 { return ^uint64(0)/uint64(max(ranks, 1)) + 1 }

func scaleUnsigned[T uint8 | uint16 | uint32](dst unsafe.Pointer, n int, ranks int) {
	r := reciprocal(ranks)
	d := scaled[T](dst, n, ranks)
	for i := range d {
		q, _ := bits.Mul64(uint64(d[i]), r)
		d[i] = T(q)
	}
}

func scaleSigned[T int8 | int16 | int32](dst unsafe.Pointer, n int, ranks int) {
	r := reciprocal(ranks)
	d := scaled[T](dst, n, ranks)
	for i := range d {
		x := int64(d[i])
		sign := x >> 63 // towards zero: divide the magnitude
		q, _ := bits.Mul64(uint64(x^sign-sign), r)
		d[i] = T(int64(q) ^ sign - sign)
	}
}
