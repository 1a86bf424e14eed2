package vec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/vec"
)

// of makes bufs of each type that hold x, and a function that tells what they hold then.
func of(x ...float64) (bufs []ccl.Buf, held func(int) []float64) {
	var a []float32
	var h []ccl.BFloat16
	var f []ccl.Float16
	d := append([]float64(nil), x...)
	for _, v := range x {
		a, h, f = append(a, float32(v)), append(h, ccl.ToBFloat16(float32(v))), append(f, ccl.ToFloat16(float32(v)))
	}
	return []ccl.Buf{ccl.BufOf(a), ccl.BufOf(d), ccl.BufOf(h), ccl.BufOf(f)}, func(i int) []float64 {
		var out []float64
		for k := range x {
			out = append(out, []float64{float64(a[k]), d[k], float64(h[k].Float32()), float64(f[k].Float32())}[i])
		}
		return out
	}
}

func TestEachType(t *testing.T) {
	for i := range 4 {
		b, held := of(1, -2, 3, 96)
		by, _ := of(.5, .5, .5, .5)
		vec.Add(b[i], by[i])
		require.Equal(t, []float64{1.5, -1.5, 3.5, 96.5}, held(i))
		vec.Scale(b[i], 2)
		require.Equal(t, []float64{3, -3, 7, 193}, held(i))
		require.Equal(t, 9.0+9+49+193*193, vec.SumSquares(b[i]))
		vec.Divide(b[i], 4)
		require.Equal(t, []float64{.75, -.75, 1.75, 48.25}, held(i))
		vec.Zero(b[i])
		require.Equal(t, []float64{0, 0, 0, 0}, held(i))
		for j := range 4 {
			src, _ := of(1, -2, .5, 96)
			vec.Convert(b[i], src[j])
			require.Equal(t, []float64{1, -2, .5, 96}, held(i), "%d from %d", i, j)
		}
	}
}

// A third is not the product with a third.
func TestDivideIsNoProduct(t *testing.T) {
	x := []float32{5, 7, 11, 13, 17, 19, 23}
	y := append([]float32(nil), x...)
	vec.Divide(ccl.BufOf(x), 3)
	vec.Scale(ccl.BufOf(y), 1./3)
	require.NotEqual(t, x, y)
	require.Equal(t, float32(7)/3, x[1])
}

func TestLongSumOfSquares(t *testing.T) {
	h := make([]ccl.BFloat16, 5000)
	for i := range h {
		h[i] = ccl.ToBFloat16(float32(i % 7))
	}
	want := 0.0
	for i := range h {
		want += float64(i%7) * float64(i%7)
	}
	require.Equal(t, want, vec.SumSquares(ccl.BufOf(h)))
	require.Zero(t, testing.AllocsPerRun(10, func() { vec.SumSquares(ccl.BufOf(h)) }))
}
