package reduce

import (
	"math"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Between hosts, a sum of 8-bit floats is made in float32, and one of 16-bit floats whose factor is below 1: from Widen
// to Narrow.

// Widen sets the n elements at dst, of float32, to those of the 8-bit or 16-bit float t at src, divided
// by a power of two where float32 could not hold the sum of so many ranks. That is exact with up to
// 65,536 ranks.
func Widen(t op.Type, dst, src unsafe.Pointer, n, ranks int) {
	if t.Float8() {
		format8Of(t).decode(unsafe.Slice((*float32)(dst), n), unsafe.Slice((*uint8)(src), n))
		return
	}
	wide, from := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*uint16)(src), n)
	if t == op.Float16 {
		for i, h := range from {
			sign, u := uint32(h&0x8000)<<16, uint32(h&0x7fff)
			switch { // as F16ToF32, but without a denormal float32, which many processors are slow at
			case u < 0x400:
				wide[i] = math.Float32frombits(sign | math.Float32bits(float32(int32(u))*0x1p-24))
			case u < 0x7c00:
				wide[i] = math.Float32frombits(sign | (u<<13 + 112<<23))
			default:
				wide[i] = F16ToF32(h)
			}
		}
		return
	}
	w := headroom(t, ranks)
	for i, x := range from {
		wide[i] = BF16ToF32(x) * w
	}
}

// Narrow sets the n elements of the 8-bit or 16-bit float t at dst to factor times the sums at src of
// what Widen has made, rounded to float32 and then to t.
func Narrow(t op.Type, dst, src unsafe.Pointer, factor float32, n, ranks int) {
	if t.Float8() {
		codes, to := format8Of(t).codes(), unsafe.Slice((*uint8)(dst), n)
		for i, x := range unsafe.Slice((*float32)(src), n) {
			to[i] = codes[oddUpper(x*factor)]
		}
		return
	}
	sums, to, rest := unsafe.Slice((*float32)(src), n), unsafe.Slice((*uint16)(dst), n), factor/headroom(t, ranks)
	if t == op.BFloat16 {
		for i, x := range sums {
			to[i] = F32ToBF16(x * rest)
		}
		return
	}
	for i, x := range sums {
		x *= rest
		u := math.Float32bits(x)
		sign, a := uint16(u>>16&0x8000), u&0x7fffffff
		switch { // as in F32ToF16, which is not inlined
		case a < 0x38800000: // zero, denormal
			to[i] = sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-math.Float32bits(0.5))
		case a < 0x47800000: // normal
			to[i] = sign | uint16((a-112<<23+0xfff+a>>13&1)>>13)
		default:
			to[i] = F32ToF16(x)
		}
	}
}
