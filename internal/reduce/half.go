package reduce

import (
	"math"
	"unsafe"
)

// F16ToF32 is the float32 of a half (IEEE 754 binary16). It is exact; a NaN keeps
// its sign and payload and becomes quiet, as VCVTPH2PS does it.
func F16ToF32(h uint16) float32 {
	sign, u := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch {
	case u < 0x7c00<<13: // the factor moves the exponent's bias, for denormals too
		u = math.Float32bits(math.Float32frombits(u) * 0x1p112)
	case u == 0x7c00<<13:
		u = 0x7f800000
	default:
		u |= 0x7fc00000
	}
	return math.Float32frombits(sign | u)
}

// F32ToF16 is the half that is nearest to f, the even one of two. A NaN keeps its
// sign and the first bits of its payload and becomes quiet, as VCVTPS2PH does it.
func F32ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00 | uint16(u>>13&0x3ff)
	case u >= 0x47800000: // 2^16
		return sign | infF16
	case u >= 0x38800000: // 2^-14: normal. A carry out of the mantissa is right, up to infinity
		return sign | uint16((u-112<<23+0xfff+u>>13&1)>>13)
	default: // denormal: the unit in the last place of 0.5 is that of a half's denormals
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-math.Float32bits(0.5))
	}
}

func sumF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint16](dst, a, b, n)
	for i := range d {
		d[i] = F32ToF16(F16ToF32(x[i]) + F16ToF32(y[i]))
	}
}

func prodF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint16](dst, a, b, n)
	for i := range d {
		d[i] = F32ToF16(F16ToF32(x[i]) * F16ToF32(y[i]))
	}
}
