//go:build xla && cgo && linux

package hlo_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

var nan, inf = math.NaN(), math.Inf(1)

// known are values that PyTorch has, or that are exact, of operations which do more than a formula.
var known = []struct {
	name string
	f    func(f program) value
	want []float64
}{
	{"Const", func(f program) value {
		return hlo.Cat(0, f.Array(hlo.F32, []float64{inf, -inf, nan, -1.5}, 4), f.Const(hlo.F32, -inf).Reshape(1))
	}, []float64{inf, -inf, nan, -1.5, -inf}},
	{"Array of integers", func(f program) value { return f.Array(hlo.I64, []float64{1, -2, 1 << 50, 4, 5, 6}, 2, 1, 3) }, []float64{1, -2, 1 << 50, 4, 5, 6}},
	{"Array of one", func(f program) value { return f.Array(hlo.U32, []float64{4294967295}) }, []float64{4294967295}},
	{"Array of none", func(f program) value {
		return hlo.Cat(0, f.Array(hlo.F32, nil, 0), f.Const(hlo.F32, 1).Reshape(1))
	}, []float64{1}},
	{"Array of Bool", func(f program) value { return f.Array(hlo.Bool, []float64{1, 0}, 2).Not() }, []float64{0, 1}},
	{"Max", func(f program) value { return vec(f, 1, nan, nan, inf, 2).Max(vec(f, nan, 1, nan, 3, -inf)) }, []float64{nan, nan, nan, inf, 2}},
	{"Min", func(f program) value { return vec(f, 1, nan, nan, inf, 2).Min(vec(f, nan, 1, nan, 3, -inf)) }, []float64{nan, nan, nan, 3, -inf}},
	{"Max of integers", func(f program) value { return given(f, hlo.I32, []float64{1, 5}, 2).Max(f.Const(hlo.I32, 3)) }, []float64{3, 5}},
	{"Clamp", func(f program) value { return vec(f, nan, -3, 3, .5).Clamp(-1, 1) }, []float64{nan, -1, 1, .5}},
	{"MaxOver", func(f program) value { return vec(f, 1, nan, 0, 1, 2, -inf).Reshape(2, 3).MaxOver(1) }, []float64{nan, 2}},
	{"MinOver", func(f program) value { return vec(f, 1, nan, 0, 1, 2, -inf).Reshape(2, 3).MinOver(0) }, []float64{1, nan, -inf}},
	{"MaxLast", func(f program) value { return vec(f, -inf, -inf).MaxLast() }, []float64{-inf}},
	{"MaxOver of integers", func(f program) value {
		return given(f, hlo.I8, []float64{-128, -5, -7, -128}, 2, 2).MaxOver(1).As(hlo.I32).Add(given(f, hlo.U8, []float64{255, 0}, 2).MinOver(0).As(hlo.I32))
	}, []float64{-5, -7}},
	{"MinOver of 64 bits", func(f program) value {
		x := given(f, hlo.I64, []float64{1 << 62, 1<<62 + 1024}, 2).MinOver(0)
		return hlo.Cat(0, x.Reshape(1), given(f, hlo.U64, []float64{1 << 63, 1<<63 + 2048}, 2).MinOver(0).As(hlo.I64).Reshape(1))
	}, []float64{1 << 62, -1 << 63}},
	// torch.nn.functional.conv2d, and its max_pool2d and avg_pool2d by 4 with a stride of 2.
	{"Conv", func(f program) value {
		x, w := given(f, hlo.F32, upTo(16), 1, 1, 4, 4), given(f, hlo.F32, upTo(4), 1, 1, 2, 2)
		return hlo.Conv(x, w, hlo.Window{Stride: []int{2, 3}, Pad: [][2]int{{1, 0}, {0, 1}}})
	}, []float64{3, 6, 48, 22}},
	{"Conv with everything", func(f program) value {
		x, w := upTo(80), upTo(32)
		for i := range x {
			x[i] = float64(i % 7)
		}
		for i := range w {
			w[i] = float64(i % 5)
		}
		return hlo.Conv(given(f, hlo.F32, x, 1, 4, 5, 4), given(f, hlo.F32, w, 4, 2, 2, 2),
			hlo.Window{Stride: []int{3, 2}, Dilation: []int{2, 1}, Pad: [][2]int{{2, 1}, {0, 3}}, Groups: 2})
	}, []float64{9, 18, 0, 59, 29, 0, 25, 7, 0, 72, 71, 0, 62, 16, 0, 48, 80, 0, 22, 2, 0, 33, 63, 0}},
	{"MaxPool", func(f program) value {
		return hlo.MaxPool(given(f, hlo.F32, upTo(16), 1, 1, 4, 4), hlo.Window{Size: []int{2, 2}, Stride: []int{2, 2}})
	}, []float64{5, 7, 13, 15}},
	{"SumPool", func(f program) value {
		return hlo.SumPool(given(f, hlo.F32, upTo(16), 1, 1, 4, 4), hlo.Window{Size: []int{2, 2}, Stride: []int{2, 2}}).MulC(.25)
	}, []float64{2.5, 4.5, 10.5, 12.5}},
	{"ArgMax", func(f program) value {
		return hlo.ArgMax(1, vec(f, 1, 3, 3, 1, nan, 3, -inf, -inf, -inf).Reshape(3, 3))
	}, []float64{1, 1, 0}},
	{"ArgMax of integers", func(f program) value { return hlo.ArgMax(0, given(f, hlo.I32, []float64{-4, -3, -3}, 3)) }, []float64{1}},
	{"Softmax", func(f program) value {
		return vec(f, 1, nan, 0, 0, -inf, 0, 1e4, -1e4, 1e4).Reshape(3, 3).Softmax()
	}, []float64{nan, nan, nan, .5, 0, .5, .5, 0, .5}},
	{"LogSumExp", func(f program) value { return vec(f, -inf, -inf, 1e4, -inf, nan, 0).Reshape(3, 2).LogSumExp() }, []float64{-inf, 1e4, nan}},
	{"Sort", func(f program) value { x, _ := hlo.Sort(0, false, vec(f, 3, nan, -inf, -nan, 0, inf)); return x }, []float64{-inf, 0, 3, inf, nan, nan}},
	{"Sort, where from", func(f program) value {
		zero := f.Const(hlo.F32, 0)
		x := vec(f, 0, 1, 0, 1)
		_, i := hlo.Sort(0, false, x.Mul(hlo.Cat(0, zero.Neg().Reshape(1), vec(f, 1, 1, 1)))) // -0 is as 0
		_, j := hlo.Sort(0, true, hlo.Cat(0, x, zero.Div(zero).Reshape(1)))                   // NaN first
		return hlo.Cat(0, i, j)
	}, []float64{0, 2, 1, 3, 4, 1, 3, 0, 2}},
	{"Sort of integers", func(f program) value {
		x, _ := hlo.Sort(1, true, given(f, hlo.I32, []float64{3, -1, 2, 5, 9, -7}, 2, 3))
		y, _ := hlo.Sort(0, false, given(f, hlo.U32, []float64{4294967295, 7, 0}, 3))
		return hlo.Cat(0, x.Reshape(6).As(hlo.I64), y.As(hlo.I64))
	}, []float64{3, 2, -1, 9, 5, -7, 0, 7, 4294967295}},
	{"TopK", func(f program) value {
		x, i := hlo.TopK(1, 2, vec(f, 3, 9, 4, 8, 8, 8).Reshape(2, 3))
		return hlo.Cat(0, x, i.As(hlo.F32))
	}, []float64{9, 4, 8, 8, 1, 2, 0, 1}},
	{"Cumsum", func(f program) value { return hlo.Cumsum(0, f.Iota(hlo.I32, 0, 7).AddC(1)) }, []float64{1, 3, 6, 10, 15, 21, 28}},
	{"Round and the like", func(f program) value {
		x := vec(f, -1.5, .5, 2.5)
		return hlo.Cat(0, x.Floor(), x.Ceil(), x.Round(), x.Sign())
	}, []float64{-2, 0, 2, -1, 1, 3, -2, 0, 2, -1, 1, 1}},
	{"Expm1, Log1p", func(f program) value { x := vec(f, 1e-12); return hlo.Cat(0, x.Expm1(), x.Log1p()) }, []float64{9.999999960041972e-13, 9.999999960041972e-13}},
	{"bits", func(f program) value {
		a, b := given(f, hlo.I32, []float64{12, 10}, 2), given(f, hlo.I32, []float64{10, 3}, 2)
		return hlo.Cat(0, a.And(b), a.Or(b), a.Not())
	}, []float64{8, 2, 14, 11, -13, -11}},
	{"Take, out of range", func(f program) value {
		return hlo.Take(0, vec(f, 1, 2, 3), given(f, hlo.I32, []float64{-4, 9, 1}, 3))
	}, []float64{1, 3, 2}},
	{"Take and AddAt of one", func(f program) value {
		x, i := vec(f, 1, 2, 3, 4, 5, 6).Reshape(2, 3), given(f, hlo.I32, []float64{2})
		return hlo.Cat(0, hlo.Take(1, x, i), hlo.AddAt(1, x, i, vec(f, 10, 20)).Reshape(6))
	}, []float64{3, 6, 1, 2, 13, 4, 5, 26}},
	{"AddAt, out of range", func(f program) value {
		return hlo.AddAt(0, vec(f, 1, 2, 3), given(f, hlo.I32, []float64{-4, 9, 1, 1}, 4), vec(f, 10, 20, 30, 40))
	}, []float64{1, 72, 3}},
	{"SetAlong", func(f program) value {
		return hlo.SetAlong(1, vec(f, 1, 2, 3, 4, 5, 6).Reshape(2, 3), given(f, hlo.I32, []float64{2, 0}, 2, 1), vec(f, -1, -2).Reshape(2, 1))
	}, []float64{1, 2, -1, -2, 5, 6}},
	{"Slice beyond the end", func(f program) value { return vec(f, 1, 2, 3).Slice([]int{2}, f.Const(hlo.I32, 2)) }, []float64{2, 3}},
	{"While", func(f program) value { // Collatz' steps from 27
		one, two := f.Const(hlo.I32, 1), f.Const(hlo.I32, 2)
		return hlo.While(values{f.Const(hlo.I32, 27), f.Const(hlo.I32, 0)}, func(x values) value { return x[0].Cmp("GT", one) },
			func(x values) values {
				half := x[0].Div(two)
				return values{hlo.If(half.Mul(two).Cmp("EQ", x[0]), half, x[0].MulC(3).AddC(1)), x[1].AddC(1)}
			})[1]
	}, []float64{111}},
	// Sums of 16-bit types are rounded once.
	{"MeanLast of float16", func(f program) value { return given(f, hlo.F16, []float64{60000, 60000, 59968}, 3).MeanLast() }, []float64{60000}},
	{"Sum of bfloat16", func(f program) value { return given(f, hlo.BF16, []float64{1}).To(2000).Sum(0) }, []float64{2000}},
	{"Cumsum of bfloat16", func(f program) value {
		return hlo.Cumsum(0, given(f, hlo.BF16, []float64{1}).To(2000)).Cut(0, 1999, 2000)
	}, []float64{2000}},
	{"AddRows of bfloat16", func(f program) value {
		return f.Const(hlo.BF16, 0).To(2, 1).AddRows(f.Const(hlo.I32, 1).To(2000, 1), f.Const(hlo.BF16, 1).To(2000, 1))
	}, []float64{0, 2000}},
	{"gradient of Rows of bfloat16", func(f program) value {
		table := f.Const(hlo.BF16, 1).To(3, 1)
		return hlo.Grad(table.Rows(f.Const(hlo.I32, 1).To(2000, 1)).SumAll(), table)[0]
	}, []float64{0, 2000, 0}},
	{"gradients of Scan of bfloat16", func(f program) value {
		w := f.Const(hlo.BF16, 1)
		y := hlo.Scan(2000, values{f.Const(hlo.F32, 0)}, nil, values{w}, func(_ value, c, _, with values) values {
			return values{c[0].Add(with[0].As(hlo.F32))}
		})
		return hlo.Grad(y[0], w)[0]
	}, []float64{2000}},
	{"gradients of Pow at 0", func(f program) value {
		x, y := vec(f, 0, 0, 0, 2), vec(f, 0, 1, 2, 0)
		return hlo.Cat(0, hlo.Grad(x.Pow(y).SumAll(), x, y)...)
	}, []float64{0, 1, 0, 0, 0, 0, 0, float64(float32(math.Ln2))}},
	{"gradient of MaxOver of equals", func(f program) value { x := vec(f, 2, 1, 2, 2); return hlo.Grad(x.MaxOver(0).MulC(3), x)[0] }, []float64{1, 0, 1, 1}},
	// 8 bits: 3 of mantissa up to 448, and 2.
	{"float8", func(f program) value {
		x := vec(f, 17, 448, -0.1)
		return hlo.Cat(0, x.As(hlo.F8E4M3).As(hlo.F32), x.As(hlo.F8E5M2).As(hlo.F32))
	}, []float64{16, 448, -0.1015625, 16, 448, -0.09375}},
	{"products of float8", func(f program) value {
		a, b := vec(f, 1, 2, 3, 4).Reshape(2, 2).As(hlo.F8E4M3), vec(f, 448, 448, 448, 448).Reshape(2, 2).As(hlo.F8E4M3)
		return hlo.DotAs(hlo.F32, a, b, []int{1}, []int{0}, nil, nil)
	}, []float64{1344, 1344, 3136, 3136}},
	{"products of bfloat16, sums of float32", func(f program) value {
		one := given(f, hlo.BF16, []float64{1}).To(1, 257)
		return hlo.DotAs(hlo.F32, one, one, []int{1}, []int{1}, nil, nil)
	}, []float64{257}},
	{"precision", func(f program) value { // numbers of 24 bits, which fewer would round
		f.Precision = "HIGHEST"
		defer func() { f.Precision = "" }()
		x, one := vec(f, 16777215, 8388609).Reshape(1, 1, 2), vec(f, 1).Reshape(1, 1, 1)
		y := hlo.Dot(x, one, []int{1}, []int{1}, []int{0}, []int{0}).Reshape(2)
		return hlo.Cat(0, y, hlo.Conv(x, one, hlo.Window{}).Reshape(2))
	}, []float64{16777215, 8388609, 16777215, 8388609}},
	// Philox4x32-10 of the key 0 and the counter 0, as its authors' kat_vectors have it.
	{"Random", func(f program) value {
		next, x := hlo.Random(given(f, hlo.U64, []float64{0, 0}, 2), hlo.U32, 2, 2)
		return hlo.Cat(0, x.Reshape(4).As(hlo.U64), next)
	}, []float64{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0, 1}},
}

// given is an array that XLA does not know when it compiles: else it would compute everything then.
func given(f program, t hlo.Type, x []float64, dims ...int) value {
	return hlo.If(yes[f], f.Array(t, x, dims...), f.Const(t, 0))
}

func upTo(n int) (x []float64) {
	for i := range n {
		x = append(x, float64(i))
	}
	return x
}

// yes is an argument that is true.
var yes = map[*hlo.Func]value{}

func vec(f program, x ...float64) value { return given(f, hlo.F32, x, len(x)) }

// The cases are one program: compiling lasts longer than running.
func TestKnownValues(t *testing.T) {
	c := xlatest.Client(t)
	var f hlo.Func
	var results values
	yes[&f] = f.Arg(hlo.I32).Cmp("EQ", f.Const(hlo.I32, 1))
	for _, tc := range known {
		results = append(results, tc.f(&f).As(hlo.F64))
		require.NoError(t, f.Err(), tc.name)
	}
	text, err := f.Text("known", results...)
	require.NoError(t, err)
	p, err := c.Compile(text, nil)
	require.NoError(t, err)
	defer p.Free()
	b, err := xla.Put(c, []int32{1})
	require.NoError(t, err)
	out, err := p.Run(0, b)
	require.NoError(t, err)
	for i, tc := range known {
		t.Run(tc.name, func(t *testing.T) {
			got := make([]float64, out[i].Len())
			require.NoError(t, xla.Get(out[i], got))
			require.Len(t, got, len(tc.want))
			for k, w := range tc.want {
				if math.IsNaN(w) {
					require.True(t, math.IsNaN(got[k]), "%v for %v", got, tc.want)
				} else {
					require.Equal(t, w, got[k], "%v for %v", got, tc.want)
				}
			}
		})
	}
	require.NoError(t, xla.FreeAll(append(out, b)...))
}
