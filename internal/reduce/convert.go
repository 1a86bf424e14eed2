package reduce

import (
	"fmt"

	"github.com/goccl/goccl/internal/op"
)

// ToFloat32 sets dst to src, whose elements are the 16-bit float t. It is exact.
func ToFloat32[H ~uint16](t op.Type, dst []float32, src []H) {
	sameLength(len(dst), len(src))
	switch dst = dst[:len(src)]; t {
	case op.Float16:
		for i, x := range src {
			dst[i] = F16ToF32(uint16(x))
		}
	case op.BFloat16:
		for i, x := range src {
			dst[i] = BF16ToF32(uint16(x))
		}
	default:
		panic(fmt.Sprintf("reduce: %v is no 16-bit float", t))
	}
}

// FromFloat32 sets dst, whose elements are the 16-bit float t, to src, rounded to nearest even.
func FromFloat32[H ~uint16](t op.Type, dst []H, src []float32) {
	sameLength(len(dst), len(src))
	switch dst = dst[:len(src)]; t {
	case op.Float16:
		for i, x := range src {
			dst[i] = H(F32ToF16(x))
		}
	case op.BFloat16:
		for i, x := range src {
			dst[i] = H(F32ToBF16(x))
		}
	default:
		panic(fmt.Sprintf("reduce: %v is no 16-bit float", t))
	}
}
