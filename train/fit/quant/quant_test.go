//go:build xla && cgo && linux

package quant_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// decoded is what a program makes of arguments.
func decoded(t *testing.T, n int, write func(f *hlo.Func) *hlo.Value, put func(c *xla.Client) []*xla.Buffer) []float32 {
	c := xlatest.Client(t)
	var f hlo.Func
	text, err := f.Text("decode", write(&f))
	require.NoError(t, err)
	p, err := c.Compile(text, nil)
	require.NoError(t, err)
	in := put(c)
	out, err := p.Run(0, in...)
	require.NoError(t, err)
	x := make([]float32, n)
	require.NoError(t, xla.Get(out[0], x))
	require.NoError(t, xla.FreeAll(append(in, out...)...))
	require.NoError(t, p.Free())
	return x
}

// Each element becomes the nearest level times the largest of its block, also where blocks are short and lengths are odd.
func TestNF4(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 129, 1000} {
		rnd, x := rand.New(rand.NewPCG(1, uint64(n))), make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.NormFloat64())
		}
		codes, scales := quant.ToNF4(x)
		got := decoded(t, n, func(f *hlo.Func) *hlo.Value {
			return quant.FromNF4(f.Arg(hlo.U8, len(codes)), f.Arg(hlo.F32, len(scales)), n, hlo.F32)
		}, func(c *xla.Client) []*xla.Buffer {
			a, err := xla.Put(c, codes, len(codes))
			require.NoError(t, err)
			b, err := xla.Put(c, scales, len(scales))
			require.NoError(t, err)
			return []*xla.Buffer{a, b}
		})
		for i, v := range x {
			scale, best := scales[i/quant.Block], float32(math.Inf(1))
			for _, l := range quant.NF4Levels {
				if d := float32(math.Abs(float64(l*scale - v))); d < best {
					best = d
				}
			}
			require.InDelta(t, best, math.Abs(float64(got[i]-v)), 1e-6, "element %d of %d", i, n)
		}
	}
	codes, scales := quant.ToNF4(make([]float32, 4))
	require.Equal(t, []uint8{0x77, 0x77}, codes)
	require.Equal(t, []float32{0}, scales)
	codes, _ = quant.ToNF4([]float32{-2, 2, 0, .2}) // the first in the high half
	require.Equal(t, []uint8{0x0f, 0x78}, codes)
}

func TestInt8(t *testing.T) {
	x := []float32{1, -2, .5, 0, 0, 0, 100, 127, -3}
	codes, scales, err := quant.ToInt8(x, 3)
	require.NoError(t, err)
	got := decoded(t, 9, func(f *hlo.Func) *hlo.Value { return quant.FromInt8(f.Arg(hlo.I8, 9), f.Arg(hlo.F32, 3), hlo.F32) },
		func(c *xla.Client) []*xla.Buffer {
			a, err := xla.Put(c, codes, 9)
			require.NoError(t, err)
			b, err := xla.Put(c, scales, 3)
			require.NoError(t, err)
			return []*xla.Buffer{a, b}
		})
	for i, v := range x {
		require.InDelta(t, v, got[i], float64(scales[i/3])/2+1e-6)
	}
	_, _, err = quant.ToInt8(x, 2)
	require.EqualError(t, err, "quant: 9 elements in 2 rows")
}
