package reduce

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

type bf16 uint16 // as ccl.BFloat16 is

func TestAdd(t *testing.T) {
	ints := []int16{1, 2, math.MaxInt16}
	Add(op.Int16, ints, []int16{10, -2, 1})
	require.Equal(t, []int16{11, 0, math.MinInt16}, ints)

	floats := []float32{1, 2.5}
	Add(op.Float32, floats, floats)
	require.Equal(t, []float32{2, 5}, floats)

	half := []bf16{0x3f80, 0x4000} // 1, 2
	Add(op.BFloat16, half, []bf16{0x3f80, 0x3f80})
	require.Equal(t, []bf16{0x4000, 0x4040}, half)

	Add(op.Float64, nil, []float64{})

	small := []uint8{0x40, 0x7e}
	Add(op.Float8E4M3, small, []uint8{0x30, 0x7e})
	require.Equal(t, []uint8{0x42, 0x7e}, small, "2 + .5, and 448 + 448, the largest number")

	require.PanicsWithValue(t, "reduce: dst has 2 elements, src 1", func() { Add(op.Float32, floats, floats[:1]) })
	require.PanicsWithValue(t, "reduce: Add of double on float32", func() { Add(op.Float64, floats, floats) })
	require.PanicsWithValue(t, "reduce: Add of bool on uint8", func() { Add(op.Bool, []uint8{1}, []uint8{1}) })
}

func TestConvertSlices(t *testing.T) {
	wide := make([]float32, 3)
	ToFloat32(op.BFloat16, wide, []bf16{0x3f80, 0xc000, 0x7f80})
	require.Equal(t, []float32{1, -2, float32(math.Inf(1))}, wide)
	wide[0], wide[1] = 2, -1
	half := make([]bf16, 3)
	FromFloat32(op.BFloat16, half, wide)
	require.Equal(t, []bf16{0x4000, 0xbf80, 0x7f80}, half)
	FromFloat32(op.Float16, half, wide)
	require.Equal(t, []bf16{0x4000, 0xbc00, 0x7c00}, half)

	ToFloat32(op.Float16, nil, []bf16{})
	require.PanicsWithValue(t, "reduce: dst has 3 elements, src 2", func() { ToFloat32(op.BFloat16, wide, half[:2]) })
	require.PanicsWithValue(t, "reduce: dst has 2 elements, src 3", func() { FromFloat32(op.BFloat16, half[:2], wide) })
	require.PanicsWithValue(t, "reduce: float is no 16-bit float", func() { FromFloat32(op.Float32, half, wide) })
	require.PanicsWithValue(t, "reduce: int16 is no 16-bit float", func() { ToFloat32(op.Int16, wide, half) })
}

func TestSumSquares(t *testing.T) {
	require.Zero(t, SumSquares[float32](nil))
	require.Equal(t, 30.0, SumSquares([]float32{1, 2, 3, 4}))
	require.True(t, math.IsNaN(SumSquares([]float64{1, math.NaN()})))
	require.True(t, math.IsInf(SumSquares([]float64{1e200}), 1))
	require.Equal(t, 0x1p-298, SumSquares([]float32{math.SmallestNonzeroFloat32}))

	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{7, 8, 9, 1000, 12345} {
		x := make([]float64, n)
		exact := new(big.Float).SetPrec(2000)
		for i := range x {
			x[i] = r.NormFloat64()
			y := new(big.Float).SetPrec(2000).SetFloat64(x[i])
			exact.Add(exact, y.Mul(y, y))
		}
		want, _ := exact.Float64()
		require.InEpsilon(t, want, SumSquares(x), 1e-13)
	}
	// The order of additions is part of what it promises. Above 2^54 every float64 is a multiple of 4.
	const big, small = 0x1p27, 1.3 // squares: 2^54, 1.69
	require.Equal(t, 0x1p54+4.0, SumSquares([]float64{big, 0, small, small}), "2 and 3 are added first")
	require.Equal(t, 0x1p54+0.0, SumSquares([]float64{big, small, 0, 0, small}), "each is lost alone")
	require.Equal(t, 0x1p54+0.0, SumSquares([]float64{big, 0, 0, 0, 0, 0, 0, 0, small, 0, 0, 0, 0, 0, 0, 0, small}), "all in sum 0")
	require.Equal(t, 0x1p54+4.0, SumSquares([]float64{big, 0, 0, small, 0, 0, 0, 0, 0, 0, 0, small}), "both in sum 3")
}
