package reduce

import (
	"math"
	"unsafe"
)

// BF16ToF32 is the float32 of a bfloat16, whose bits are the upper half of a
// float32's. It is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 is the bfloat16 that is nearest to f, the even one of two. A NaN keeps
// its sign and the first bits of its payload and becomes quiet, as VCVTNEPS2BF16
// does it; denormals are kept, which that instruction does not.
func F32ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func sumBF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint16](dst, a, b, n)
	for i := range d {
		d[i] = F32ToBF16(BF16ToF32(x[i]) + BF16ToF32(y[i]))
	}
}

func prodBF16(dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[uint16](dst, a, b, n)
	for i := range d {
		d[i] = F32ToBF16(BF16ToF32(x[i]) * BF16ToF32(y[i]))
	}
}
