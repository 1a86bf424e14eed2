package reduce

import (
	"math"
	"unsafe"
)

// Min and Max of floats: IEEE 754-2019's minimum and maximum, with the bits of a
// NaN specified: the first one's, made quiet.

func minFloat[T float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for i := range d {
		z := min(x[i], y[i])
		if z != z {
			z = firstNaN(x[i], y[i])
		}
		d[i] = z
	}
}

func maxFloat[T float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for i := range d {
		z := max(x[i], y[i])
		if z != z {
			z = firstNaN(x[i], y[i])
		}
		d[i] = z
	}
}

// firstNaN is x if that is a NaN, else y, made quiet. Bit by bit, since what an
// addition would make of a NaN differs between architectures.
func firstNaN[T float](x, y T) T {
	if x == x {
		x = y
	}
	switch p := any(&x).(type) {
	case *float32:
		*p = math.Float32frombits(math.Float32bits(*p) | 1<<22)
	case *float64:
		*p = math.Float64frombits(math.Float64bits(*p) | 1<<51)
	}
	return x
}

// The infinities of the 16-bit floats. What is above, the sign aside, is a NaN, and
// a NaN or-ed with half of it is quiet. So it is of 8-bit floats, with what format8 has.
const (
	infF16  = 0x7c00
	infBF16 = 0x7f80
)

func minF16(dst, a, b unsafe.Pointer, n int)  { minBits[uint16](dst, a, b, n, infF16) }
func maxF16(dst, a, b unsafe.Pointer, n int)  { maxBits[uint16](dst, a, b, n, infF16) }
func minBF16(dst, a, b unsafe.Pointer, n int) { minBits[uint16](dst, a, b, n, infBF16) }
func maxBF16(dst, a, b unsafe.Pointer, n int) { maxBits[uint16](dst, a, b, n, infBF16) }

// bits8or16 are those of a float that Go lacks.
type bits8or16 interface{ uint8 | uint16 }

func minBits[T bits8or16](dst, a, b unsafe.Pointer, n int, inf T) {
	d, x, y := vectors[T](dst, a, b, n)
	for i := range d {
		d[i] = either(x[i], y[i], inf, order(x[i]) < order(y[i]))
	}
}

func maxBits[T bits8or16](dst, a, b unsafe.Pointer, n int, inf T) {
	d, x, y := vectors[T](dst, a, b, n)
	for i := range d {
		d[i] = either(x[i], y[i], inf, order(x[i]) > order(y[i]))
	}
}

// signOf is the bit of a sign.
func signOf[T bits8or16]() T { return ^(^T(0) >> 1) }

// order orders the floats of 8 or 16 bits, but NaNs, from -Inf to -0, +0 and +Inf. No
// conversion to float32 is needed for that.
func order[T bits8or16](h T) T {
	if h&signOf[T]() != 0 {
		return ^h
	}
	return h | signOf[T]()
}

// either is the first NaN of x and y or, without any, x if first, else y.
func either[T bits8or16](x, y, inf T, first bool) T {
	switch {
	case x&^signOf[T]() > inf:
		return x | inf>>1
	case y&^signOf[T]() > inf:
		return y | inf>>1
	case first:
		return x
	default:
		return y
	}
}
