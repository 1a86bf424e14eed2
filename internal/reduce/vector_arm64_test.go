//go:build !noasm

package reduce

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

var expected = flag.String("levels", "", "the levels that this CPU has, best first, with commas between them")

// TestLevelsOfTheCPU: make arm64 says which CPU is emulated. A level that it does not have would end the other tests by SIGILL.
func TestLevelsOfTheCPU(t *testing.T) {
	all := []string{"neon+fp16+bf16", "neon+fp16", "neon+bf16", "neon", "generic"}
	for _, name := range Levels() {
		require.Contains(t, all, name)
	}
	last := Levels()[max(len(Levels())-2, 0):]
	require.Equal(t, []string{"neon", "generic"}, last)
	if *expected != "" {
		require.Equal(t, *expected, strings.Join(Levels(), ","))
	}
}

// A factor that is a NaN makes NaNs, whatever its bits: those that are all ones would be carried over where bfloats are rounded.
func TestWeighByNaN(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, typ := range halves {
			for _, bits := range []uint32{0x7fffffff, 0xffffffff, 0x7f800001, 0x7fc00000, 0x7fbfffff} {
				x := make([]uint16, 77)
				for i := range x {
					x[i] = uint16(257 * i)
				}
				at := unsafe.Pointer(&x[0])
				ScaledAll(typ, at, []unsafe.Pointer{at}, math.Float32frombits(bits), len(x))
				for i, h := range x {
					require.Greater(t, uint64(h&0x7fff), infinity(typ), "%v, factor %#x, element %d", typ, bits, i)
				}
			}
		}
	})
}

// TestScaleOfIntegers has what is divided by way of floats: all values of 16 bits, and those of 32 bits around multiples, where a
// quotient changes.
func TestScaleOfIntegers(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, ranks := range []int{2, 3, 5, 7, 10, 127, 255, 256, 641, 32767, 65535, 1 << 16, 1<<16 + 1, 1<<24 + 1, 1<<31 - 1, 1 << 31, 1<<32 + 1, 1<<53 + 1, math.MaxInt} {
			short := make([]uint16, 1<<16)
			for i := range short {
				short[i] = uint16(i)
			}
			var long []uint32
			for k := range uint64(300) {
				for _, multiple := range []uint64{k * uint64(ranks), (math.MaxUint32/uint64(ranks) - k) * uint64(ranks), (1<<31/uint64(ranks) - k) * uint64(ranks)} {
					long = append(long, uint32(multiple-1), uint32(multiple), uint32(multiple+1), -uint32(multiple), 1-uint32(multiple))
				}
			}
			for _, tc := range []struct {
				typ op.Type
				all []byte
			}{
				{op.Int8, asBytes(short)}, {op.Uint8, asBytes(short)}, {op.Int16, asBytes(short)}, {op.Uint16, asBytes(short)},
				{op.Int32, asBytes(long)}, {op.Uint32, asBytes(long)},
			} {
				got, want := slices.Clone(tc.all), slices.Clone(tc.all)
				n := len(got) / tc.typ.Size()
				Scale(tc.typ)(unsafe.Pointer(&got[0]), n, ranks)
				generic.scale[tc.typ](unsafe.Pointer(&want[0]), n, ranks)
				require.NoError(t, equal(tc.typ, op.Avg, got, want), "%v / %d", tc.typ, ranks)
			}
		}
	})
}
