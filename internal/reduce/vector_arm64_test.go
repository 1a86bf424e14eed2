//go:build !noasm

package reduce

import (
	"flag"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
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
