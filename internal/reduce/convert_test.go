package reduce

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

var halves = []op.Type{op.Float16, op.BFloat16}

// Every 16-bit float becomes the float32 it is, and that becomes it again; NaNs become quiet.
func TestEveryHalf(t *testing.T) {
	const all = 1 << 16
	src, wide, back := make([]uint16, all), make([]float32, all), make([]uint16, all)
	for i := range src {
		src[i] = uint16(i)
	}
	for _, tc := range []struct {
		typ    op.Type
		to     func(uint16) float32
		inf, q uint16
	}{{op.Float16, F16ToF32, 0x7c00, 0x200}, {op.BFloat16, BF16ToF32, 0x7f80, 0x40}} {
		ToFloat32(tc.typ, wide, src)
		FromFloat32(tc.typ, back, wide)
		for i, x := range src {
			require.Equal(t, math.Float32bits(tc.to(x)), math.Float32bits(wide[i]), "%v %#x", tc.typ, x)
			if x&0x7fff > tc.inf {
				x |= tc.q
			}
			require.Equal(t, x, back[i], "%v", tc.typ)
		}
	}
}

func TestConversionsAllocateNothing(t *testing.T) {
	wide, half := make([]float32, piece/2), make([]uint16, piece/2)
	eachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(3, func() {
			for _, typ := range halves {
				ToFloat32(typ, wide, half)
				FromFloat32(typ, half, wide)
			}
			Add(op.Float32, wide, wide)
			SumSquares(wide)
		}))
	})
}

func BenchmarkConvert(b *testing.B) {
	const n = 32 << 10
	wide, half := make([]float32, n), make([]uint16, n)
	for _, typ := range halves {
		for name, f := range map[string]func(){
			"widen":  func() { ToFloat32(typ, wide, half) },
			"narrow": func() { FromFloat32(typ, half, wide) },
		} {
			b.Run(fmt.Sprintf("%v/%s", typ, name), func(b *testing.B) {
				b.SetBytes(4 * n)
				for b.Loop() {
					f()
				}
			})
		}
	}
}
