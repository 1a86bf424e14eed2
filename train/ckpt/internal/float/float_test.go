package float

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// float64 is rounded to 16 bits once: next to a middle between two neighbors, to the nearer one, and on it to the even one.
func TestConvertRoundsOnce(t *testing.T) {
	for name, next := range map[string]func(bits uint16) float64{
		"F16": func(b uint16) float64 { return float64(ccl.Float16(b).Float32()) }, "BF16": func(b uint16) float64 { return float64(ccl.BFloat16(b).Float32()) },
	} {
		infinite := uint16(0x7c00)
		if name == "BF16" {
			infinite = 0x7f80
		}
		put := func(x float64) uint16 {
			b := make([]byte, 2)
			Types[name].Put(b, x)
			return le.Uint16(b)
		}
		for low := range infinite - 1 {
			a, b := next(low), next(low+1)
			middle := a/2 + b/2
			for _, sign := range []uint16{0, 0x8000} {
				x := middle
				if sign != 0 {
					x = -x
				}
				require.Equal(t, sign|(low+1)&^1, put(x), "%s %x", name, low)
				require.Equal(t, sign|low, put(math.Nextafter(x, 0)), "%s %x", name, low)
				require.Equal(t, sign|low+1, put(math.Nextafter(x, 2*x)), "%s %x", name, low)
			}
		}
		require.Equal(t, infinite, put(math.MaxFloat64), name)
		require.Equal(t, infinite|0x8000, put(math.Inf(-1)), name)
		require.Zero(t, put(math.SmallestNonzeroFloat64), name)
		require.True(t, math.IsNaN(next(put(math.NaN()))), name)
	}
}
