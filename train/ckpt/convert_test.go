package ckpt

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Each type of floating point is loaded as each other: exact where it fits, rounded to nearest even and infinite where not.
// The wanted bits were computed by hand from the formats: 1 sign, then 5 and 10, 8 and 7, 8 and 23, or 11 and 52 bits.
func TestConvert(t *testing.T) {
	x := []float64{0, 1, -2.5, 65504, 1e6, 1 + 1./4096, math.Inf(-1), 1 + 3./256}
	half := []ccl.Float16{0, 0x3c00, 0xc100, 0x7bff, 0x7c00, 0x3c00, 0xfc00, 0x3c0c}
	brain := []ccl.BFloat16{0, 0x3f80, 0xc020, 0x4780, 0x4974, 0x3f80, 0xff80, 0x3f82} // 1+3/256 is half way
	single := make([]float32, len(x))
	for i := range x {
		single[i] = float32(x[i])
	}
	widen := func(f func(i int) float32) (a []float32, b []float64) {
		for i := range x {
			a, b = append(a, f(i)), append(b, float64(f(i)))
		}
		return a, b
	}
	half32, half64 := widen(func(i int) float32 { return half[i].Float32() })
	brain32, brain64 := widen(func(i int) float32 { return brain[i].Float32() })
	into := map[string][4]any{ // from a type, in the order of names
		"F64": {x, single, half, brain}, "F32": {x, single, half, brain},
		"F16": {half64, half32, half, nil}, "BF16": {brain64, brain32, nil, brain}}
	from := map[string]any{"F64": x, "F32": single, "F16": half, "BF16": brain}
	dir := Step(t.TempDir(), 1)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		ts := []Tensor{{Name: "int", Data: []int64{3}}}
		names := []string{"F64", "F32", "F16", "BF16"} // in one order on both ranks
		for _, name := range names {
			ts = append(ts, Tensor{Name: name, Shape: []int{4, 2}, Data: from[name]})
		}
		require.NoError(t, Save(ctx, c, dir, nil, ts))
		for _, name := range names {
			for k, w := range into[name] {
				if w == nil {
					continue
				}
				got := []any{make([]float64, 8), make([]float32, 8), make([]ccl.Float16, 8), make([]ccl.BFloat16, 8)}[k]
				some := []Tensor{{Name: name, Shape: []int{4, 2}, Data: got}}
				_, err := LoadWith(ctx, c, dir, nil, some, LoadOptions{Convert: true})
				require.NoError(t, err)
				require.Equal(t, w, got, "%s as %T", name, got)
				if names[k] != name {
					require.ErrorContains(t, Load(ctx, c, dir, nil, some), fmt.Sprintf("tensor %q is %s [4 2] in", name, name))
				}
			}
		}
		// A column of a rank's own.
		part := make([]float64, 4)
		_, err := LoadWith(ctx, c, dir, nil, []Tensor{{Name: "BF16", Shape: []int{4, 2}, Offset: []int{0, c.Rank()}, Size: []int{4, 1}, Data: part}}, LoadOptions{Convert: true})
		require.NoError(t, err)
		for i := range part {
			require.Equal(t, brain64[2*i+c.Rank()], part[i])
		}
		_, err = LoadWith(ctx, c, dir, nil, []Tensor{{Name: "int", Data: make([]float32, 1)}}, LoadOptions{Convert: true})
		require.ErrorContains(t, err, `tensor "int" is I64 [] in`)
	})
}

// A tensor of several blocks and many chunks is converted whole, from a file whose elements cross the blocks.
func TestConvertLarge(t *testing.T) {
	dir := Step(t.TempDir(), 1)
	const n = block/4 + 3*chunk + 5
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i)
		}
		require.NoError(t, Save(t.Context(), c, dir, nil, []Tensor{{Name: "odd", Shape: []int{3}, Data: []int8{1, 2, 3}}, {Name: "x", Shape: []int{n}, Data: x}}))
		y := make([]float64, n-7)
		_, err := LoadWith(t.Context(), c, dir, nil, []Tensor{{Name: "x", Shape: []int{n}, Lo: 7, Hi: n, Data: y}}, LoadOptions{Convert: true})
		require.NoError(t, err)
		for i := range y {
			if y[i] != float64(i+7) {
				require.Equal(t, float64(i+7), y[i], "element %d", i)
			}
		}
	})
}
