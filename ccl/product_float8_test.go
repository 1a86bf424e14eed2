package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func encE4M3(x float64) ccl.Float8E4M3 { return ccl.ToFloat8E4M3(float32(x)) }
func decE4M3(x ccl.Float8E4M3) float64 { return float64(x.Float32()) }
func encE5M2(x float64) ccl.Float8E5M2 { return ccl.ToFloat8E5M2(float32(x)) }
func decE5M2(x ccl.Float8E5M2) float64 { return float64(x.Float32()) }

// Sums and averages of 8-bit floats are those of float32, rounded once, on one host and between hosts: these are exact in
// float32, so their order does not matter.
func TestSumsOfFloat8(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			halves(t, c, encE4M3, decE4M3)
			halves(t, c, encE5M2, decE5M2)
		})
	}
}

// Whatever the numbers, infinities and NaNs too, all ranks have the same bits, and a number that no sum passes is not lost:
// what leaves the range on the way comes back into it.
func TestSumsOfFloat8AreTheSame(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			for _, op := range []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg} {
				for _, count := range []int{1, 700, 100_001} {
					sameOnAll[ccl.Float8E4M3](t, c, op, count)
					sameOnAll[ccl.Float8E5M2](t, c, op, count)
				}
			}
			x := []ccl.Float8E4M3{ccl.ToFloat8E4M3(448), ccl.ToFloat8E4M3(448)}
			if c.Rank() == n-1 {
				x[0] = ccl.ToFloat8E4M3(-448)
			}
			mean := ccl.ToFloat8E4M3(448 * float32(n-2) / float32(n))
			sum := ccl.ToFloat8E4M3(448 * float32(n-2))
			y := make([]ccl.Float8E4M3, 2)
			require.NoError(t, ccl.AllReduce(t.Context(), c, y, x, ccl.Sum))
			require.Equal(t, []ccl.Float8E4M3{sum, 0x7e}, y)
			require.NoError(t, ccl.AllReduce(t.Context(), c, y, x, ccl.Avg))
			require.Equal(t, []ccl.Float8E4M3{mean, 0x7e}, y)
		})
	}
}

func sameOnAll[T ccl.Float8E4M3 | ccl.Float8E5M2](t testing.TB, c *ccl.Comm, op ccl.Op, count int) {
	x := make([]T, count)
	for i := range x {
		x[i] = T(mix(uint64(c.Rank())<<32 | uint64(i)))
	}
	require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, op))
	first := append([]T(nil), x...)
	require.NoError(t, ccl.Broadcast(t.Context(), c, first, 0))
	require.NoError(t, differences(x, first), "%v of %d on %v", op, count, c)
}
