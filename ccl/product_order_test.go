package ccl_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// rough are values whose sums and products round, differently in each order.
func rough(rank, i int) float64 {
	h := mix(uint64(rank)<<32 | uint64(i))
	return (1 + float64(h>>12)/(1<<52)) * math.Ldexp(1-2*float64(h&1), int(h>>1%13)-6)
}

// foldLeft is x[0] op x[1] op ..., each rounded by round.
func foldLeft(op ccl.Op, x []float64, round func(float64) float64) float64 {
	y := x[0]
	for _, v := range x[1:] {
		switch op {
		case ccl.Sum, ccl.Avg:
			y = round(y + v)
		case ccl.Prod:
			y = round(y * v)
		}
	}
	if op == ccl.Avg {
		y = round(y / float64(len(x)))
	}
	return y
}

// sumOnce is x[0] + x[1] + ... in float32, of numbers with 11 digits or fewer, divided there for an average, and rounded by
// round at the end.
func sumOnce(op ccl.Op, x []float64, round func(float64) float64) float64 {
	y := float32(x[0])
	for _, v := range x[1:] {
		y += float32(v)
	}
	if op == ccl.Avg {
		y /= float32(len(x))
	}
	return round(float64(y))
}

// roundsOnce reports whether sums are rounded once: those of 8-bit floats, and on one host those of 16-bit floats, of three
// ranks or more. Elsewhere they are rounded after each addition.
func roundsOnce[T ccl.Number](c *ccl.Comm) bool {
	typ := ccl.TypeOf[T]()
	return typ == ccl.TypeFloat8E4M3 || typ == ccl.TypeFloat8E5M2 || (typ == ccl.TypeFloat16 || typ == ccl.TypeBFloat16) && c.Place().Nodes == 1 && c.Size() > 2
}

// checkOrder plays the reducing kinds with values that round, and compares with the
// left fold in rank order, bit by bit. Sums and products of T in float64 are exact,
// or T is float64 itself, so rounding them once is rounding as T does.
func checkOrder[T ccl.Number](t testing.TB, c *ccl.Comm, enc func(float64) T, dec func(T) float64) {
	n, rank := c.Size(), c.Rank()
	round := func(x float64) float64 { return dec(enc(x)) }
	once := roundsOnce[T](c)
	counts := []int{1, 64, 700, 9_000, 40_001}
	if testing.Short() {
		counts = counts[:3]
	}
	for _, count := range counts {
		for _, op := range []ccl.Op{ccl.Sum, ccl.Prod, ccl.Avg} {
			src, want := make([]T, n*count), make([]T, n*count)
			x := make([]float64, n)
			for i := range src {
				src[i] = enc(rough(rank, i))
				for r := range x {
					x[r] = round(rough(r, i))
				}
				if once && op != ccl.Prod {
					want[i] = enc(sumOnce(op, x, round))
				} else {
					want[i] = enc(foldLeft(op, x, round))
				}
			}
			name := fmt.Sprintf("%v of %d %v on %v", op, count, ccl.TypeOf[T](), c)
			dst := make([]T, n*count)
			require.NoError(t, ccl.AllReduce(t.Context(), c, dst, src, op))
			require.NoError(t, differences(dst, want), "AllReduce %s", name)

			dst = make([]T, count)
			require.NoError(t, ccl.ReduceScatter(t.Context(), c, dst, src, op))
			require.NoError(t, differences(dst, want[rank*count:][:count]), "ReduceScatter %s", name)

			for _, root := range roots(n) {
				dst = make([]T, n*count)
				require.NoError(t, ccl.Reduce(t.Context(), c, dst, src, op, root))
				if rank == root {
					require.NoError(t, differences(dst, want), "Reduce to %d, %s", root, name)
				}
			}

			parts := make([]int, n)
			parts[n-1], parts[0] = count, (n-1)*count
			if n == 1 {
				parts[0] = count
			}
			at := 0
			for _, k := range parts[:rank] {
				at += k
			}
			dst = make([]T, parts[rank])
			require.NoError(t, ccl.ReduceScatterV(t.Context(), c, dst, src, parts, op))
			require.NoError(t, differences(dst, want[at:][:parts[rank]]), "ReduceScatterV %s", name)
		}
	}
}

// With RankOrder the bits are those of adding rank by rank.
func TestRankOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 6} {
		if testing.Short() && n == 4 {
			continue
		}
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			checkOrder(t, c, func(x float64) float64 { return x }, func(x float64) float64 { return x })
			checkOrder(t, c, func(x float64) float32 { return float32(x) }, func(x float32) float64 { return float64(x) })
			checkOrder(t, c, func(x float64) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) },
				func(x ccl.BFloat16) float64 { return float64(x.Float32()) })
			checkOrder(t, c, func(x float64) ccl.Float16 { return ccl.ToFloat16(float32(x)) },
				func(x ccl.Float16) float64 { return float64(x.Float32()) })
			checkOrder(t, c, encE4M3, decE4M3)
			checkOrder(t, c, encE5M2, decE5M2)
		}, ccltest.With(ccl.Options{RankOrder: true}))
	}
}

// The values of TestRankOrder do tell orders apart.
func TestRankOrderMatters(t *testing.T) {
	round := func(x float64) float64 { return float64(float32(x)) }
	differ := 0
	for i := range 1000 {
		x := []float64{round(rough(0, i)), round(rough(1, i)), round(rough(2, i))}
		y := []float64{x[2], x[1], x[0]}
		if foldLeft(ccl.Sum, x, round) != foldLeft(ccl.Sum, y, round) {
			differ++
		}
	}
	require.Greater(t, differ, 200)
}

// Without RankOrder all ranks still have the same bits of an AllReduce.
func TestSameBits(t *testing.T) {
	for _, n := range []int{3, 5, 8} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			for _, count := range []int{1, 600, 20_000, 100_001} {
				x := make([]float32, count)
				for i := range x {
					x[i] = float32(rough(c.Rank(), i))
				}
				require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
				first := append([]float32(nil), x...)
				require.NoError(t, ccl.Broadcast(t.Context(), c, first, 0))
				require.NoError(t, differences(x, first), "%d on %v", count, c)
			}
		})
	}
}

// NaN wins every Min and Max, -0 is less than +0, and sums of infinities are IEEE's.
func TestSpecialFloats(t *testing.T) {
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	for _, tc := range []struct {
		op   ccl.Op
		x    []float64 // by rank
		want float64
	}{
		{ccl.Min, []float64{1, nan, 3}, nan},
		{ccl.Max, []float64{nan, 1, 3}, nan},
		{ccl.Max, []float64{1, 2, nan}, nan},
		{ccl.Min, []float64{0, zero, 0}, zero},
		{ccl.Max, []float64{zero, 0, zero}, 0},
		{ccl.Min, []float64{inf, -inf, 5}, -inf},
		{ccl.Max, []float64{inf, -inf, 5}, inf},
		{ccl.Sum, []float64{inf, -inf, 5}, nan},
		{ccl.Sum, []float64{inf, 1, 5}, inf},
		{ccl.Prod, []float64{inf, 0, 5}, nan},
		{ccl.Avg, []float64{-inf, 0, 5}, -inf},
		{ccl.Avg, []float64{1, 0, 1}, 2. / 3},
	} {
		t.Run(fmt.Sprint(tc.op, tc.x), func(t *testing.T) {
			for _, opt := range [][]ccltest.Option{nil, {ccltest.Hosts(3)}} {
				ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
					special(t, c, tc.op, tc.x[c.Rank()], tc.want, func(x float64) float64 { return x }, func(x float64) float64 { return x })
					special(t, c, tc.op, tc.x[c.Rank()], float64(float32(tc.want)), func(x float64) float32 { return float32(x) }, func(x float32) float64 { return float64(x) })
				}, opt...)
			}
		})
	}
}

func special[T ccl.Number](t testing.TB, c *ccl.Comm, op ccl.Op, x, want float64, enc func(float64) T, dec func(T) float64) {
	v := make([]T, 67)
	for i := range v {
		v[i] = enc(x)
	}
	require.NoError(t, ccl.AllReduce(t.Context(), c, v, v, op))
	for i := range v {
		got := dec(v[i])
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got), "%v", got)
			continue
		}
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v", got)
	}
}
