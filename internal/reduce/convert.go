package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// Convert computes: for i := range n { dst[i] = src[i] } between a 16-bit float and float32.
//
// dst and src must not overlap. No alignment is required.
type Convert func(dst, src unsafe.Pointer, n int)

// Widen is the conversion of t to float32, which is exact. It is nil for what is neither Float16 nor BFloat16.
func Widen(t op.Type) Convert {
	if t >= op.Types {
		return nil
	}
	return chosen.widen[t]
}

// Narrow is the conversion of float32 to t: to nearest even, as F32ToF16 and F32ToBF16. It is nil where Widen is.
func Narrow(t op.Type) Convert {
	if t >= op.Types {
		return nil
	}
	return chosen.narrow[t]
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
