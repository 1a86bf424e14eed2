package reduce

import "unsafe"

// Convert computes: for i := range n { dst[i] = src[i] } between a 16-bit float and float32.
//
// dst and src must not overlap. No alignment is required.
type Convert func(dst, src unsafe.Pointer, n int)

// Widen is the conversion of t to float32, which is exact. It is nil for what is neither Float16 nor BFloat16.
func Widen(t Type) Convert {
	if t >= Types {
		return nil
	}
	return chosen.widen[t]
}

// Narrow is the conversion of float32 to t: to nearest even, as F32ToF16 and F32ToBF16. It is nil where Widen is.
func Narrow(t Type) Convert {
	if t >= Types {
		return nil
	}
	return chosen.narrow[t]
}

// Accumulate computes: for i := range n { dst[i] = a[i] + b[i] }, where dst and a are float32 and b has the type t:
// the sum of many without a rounding to t for each. dst may be a. It is nil where Widen is.
func Accumulate(t Type) Func {
	if t >= Types {
		return nil
	}
	return chosen.accumulate[t]
}

func widenF16(dst, src unsafe.Pointer, n int) {
	d, s := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*uint16)(src), n)
	for i := range d {
		d[i] = F16ToF32(s[i])
	}
}

func widenBF16(dst, src unsafe.Pointer, n int) {
	d, s := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*uint16)(src), n)
	for i := range d {
		d[i] = BF16ToF32(s[i])
	}
}

func narrowF16(dst, src unsafe.Pointer, n int) {
	d, s := unsafe.Slice((*uint16)(dst), n), unsafe.Slice((*float32)(src), n)
	for i := range d {
		d[i] = F32ToF16(s[i])
	}
}

func narrowBF16(dst, src unsafe.Pointer, n int) {
	d, s := unsafe.Slice((*uint16)(dst), n), unsafe.Slice((*float32)(src), n)
	for i := range d {
		d[i] = F32ToBF16(s[i])
	}
}

func accumulateF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*float32)(a), n), unsafe.Slice((*uint16)(b), n)
	for i := range d {
		d[i] = x[i] + F16ToF32(y[i])
	}
}

func accumulateBF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*float32)(a), n), unsafe.Slice((*uint16)(b), n)
	for i := range d {
		d[i] = x[i] + BF16ToF32(y[i])
	}
}
