//go:build xla && cgo && linux

package hlo_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// one is an operation with one operand, two is one with two.
func one(f func(value) value) func(values) value { return func(x values) value { return f(x[0]) } }
func two(f func(a, b value) value) func(values) value {
	return func(x values) value { return f(x[0], x[1]) }
}

// differentiable are all operations with a gradient, alone, each with the dimensions of its operands.
var differentiable = []struct {
	name string
	dims [][]int
	f    func(x values) value
}{
	{"Add", [][]int{{2, 3}, {3}}, two(value.Add)},
	{"Add, turned", [][]int{{3}, {2, 3}}, two(value.Add)},
	{"Sub", [][]int{{2, 3}, {3}}, two(value.Sub)},
	{"Mul", [][]int{{2, 3}, {2, 1}}, two(value.Mul)},
	{"Div", [][]int{{2, 3}, {3}}, two(value.Div)},
	{"Div, turned", [][]int{{3}, {2, 3}}, two(value.Div)},
	{"Min", [][]int{{2, 3}, {3}}, two(value.Min)},
	{"Max", [][]int{{2, 3}, {3}}, two(value.Max)},
	{"Pow", [][]int{{2, 3}, {3}}, two(value.Pow)},
	{"AddC, MulC", [][]int{{2, 3}}, func(x values) value { return x[0].AddC(2).MulC(3) }},
	{"Neg", [][]int{{2, 3}}, one(value.Neg)},
	{"Abs", [][]int{{2, 3}}, func(x values) value { return x[0].AddC(-.8).Abs() }},
	{"Exp", [][]int{{2, 3}}, one(value.Exp)},
	{"Log", [][]int{{2, 3}}, one(value.Log)},
	{"Sqrt", [][]int{{2, 3}}, one(value.Sqrt)},
	{"Rsqrt", [][]int{{2, 3}}, one(value.Rsqrt)},
	{"Tanh", [][]int{{2, 3}}, one(value.Tanh)},
	{"Logistic", [][]int{{2, 3}}, one(value.Logistic)},
	{"Sin", [][]int{{2, 3}}, one(value.Sin)},
	{"Cos", [][]int{{2, 3}}, one(value.Cos)},
	{"Erf", [][]int{{2, 3}}, one(value.Erf)},
	{"If", [][]int{{2, 3}, {3}}, func(x values) value { return hlo.If(x[0].Cmp("GT", x[1]), x[0].Mul(x[0]), x[1]) }},
	{"If of scalars", [][]int{{}, {2, 3}}, func(x values) value { return hlo.If(x[1].Cmp("LT", x[0]), x[0], x[1].Mul(x[1])) }},
	{"To", [][]int{{3, 1}}, func(x values) value { return x[0].To(2, 3, 4) }},
	{"Reshape", [][]int{{2, 3}}, func(x values) value { return x[0].Reshape(3, 2).Mul(x[0].Reshape(3, 2)) }},
	{"Perm", [][]int{{2, 3, 4}}, func(x values) value { return x[0].Perm(2, 0, 1) }},
	{"Cut", [][]int{{2, 4}}, func(x values) value { return x[0].Cut(1, 1, 3) }},
	{"Pad", [][]int{{2, 3}}, func(x values) value { return x[0].Pad(1, 1, 2) }},
	{"Cat", [][]int{{2, 3}, {2, 1}}, func(x values) value { return hlo.Cat(1, x[0], x[1], x[0]) }},
	{"Sum", [][]int{{2, 3, 4}}, func(x values) value { return x[0].Sum(0, 2) }},
	{"SumAll", [][]int{{2, 3}}, one(value.SumAll)},
	{"SumLast", [][]int{{2, 3}}, one(value.SumLast)},
	{"MeanLast", [][]int{{2, 3}}, one(value.MeanLast)},
	{"MaxLast", [][]int{{2, 3}}, one(value.MaxLast)},
	{"Rows", [][]int{{4, 3}}, func(x values) value { y := x[0].Rows(index(x[0])); return y.Mul(y) }},
	{"AddRows", [][]int{{4, 3}, {3, 3}}, func(x values) value { y := x[0].AddRows(index(x[0]), x[1]); return y.Mul(y) }},
	{"matrices", [][]int{{2, 3}, {3, 4}}, dot([]int{1}, []int{0}, nil, nil)},
	{"right transposed", [][]int{{2, 3}, {4, 3}}, dot([]int{1}, []int{1}, nil, nil)},
	{"left transposed", [][]int{{3, 2}, {4, 3}}, dot([]int{0}, []int{1}, nil, nil)},
	{"attention", [][]int{{2, 5, 3, 4}, {2, 6, 3, 4}}, dot([]int{3}, []int{3}, []int{0, 2}, []int{0, 2})},
	{"two contracted", [][]int{{2, 3, 4}, {4, 5, 3}}, dot([]int{1, 2}, []int{2, 0}, nil, nil)},
	{"batches turned", [][]int{{3, 2, 4}, {4, 3, 5, 2}}, dot([]int{2}, []int{0}, []int{1, 0}, []int{3, 1})},
	{"vectors", [][]int{{3}, {3}}, dot([]int{0}, []int{0}, nil, nil)},
	{"outer", [][]int{{3}, {2}}, dot(nil, nil, nil, nil)},
	{"softmax", [][]int{{2, 3}}, func(x values) value {
		e := x[0].Sub(hlo.Stop(x[0].MaxLast())).Exp()
		return e.Div(e.SumLast())
	}},
	{"With", [][]int{{2, 3}}, func(x values) value {
		return hlo.With(x[0].Mul(x[0]), values{x[0]}, func(d value) values { return values{d.Mul(x[0]).MulC(2)} })
	}},
	{"Again", [][]int{{2, 3}, {3}}, func(x values) value {
		y := hlo.Again(x, func(x values) value { return x[0].Mul(x[1]).Tanh().Mul(x[0]) })
		return y.Mul(x[1].Exp()) // and its inputs are used beside it
	}},
	{"Again, with constants", [][]int{{3}}, func(x values) value {
		f := x[0].Func()
		c, still := f.Array(hlo.F64, []float64{1, 2, 3}, 3), hlo.Stop(x[0])
		return hlo.Again(x, func(x values) value { return x[0].Mul(c).Mul(x[0]).Add(still.Mul(f.Const(hlo.F64, 0))) })
	}},
	{"Clamp", [][]int{{2, 3}}, func(x values) value { return x[0].Clamp(.5, 1) }},
	{"Expm1", [][]int{{2, 3}}, one(value.Expm1)},
	{"Log1p", [][]int{{2, 3}}, one(value.Log1p)},
	{"Mean", [][]int{{2, 3, 4}}, func(x values) value { return x[0].Mean(0, 2) }},
	{"MaxOver", [][]int{{2, 3, 4}}, func(x values) value { return x[0].MaxOver(0, 2) }},
	{"MinOver", [][]int{{2, 3, 4}}, func(x values) value { return x[0].MinOver(1) }},
	{"Softmax", [][]int{{2, 3}}, one(value.Softmax)},
	{"LogSumExp", [][]int{{2, 3}}, one(value.LogSumExp)},
	{"Cumsum", [][]int{{2, 5}}, func(x values) value { y := hlo.Cumsum(1, x[0]); return y.Mul(y) }},
	{"Slice", [][]int{{3, 4}}, func(x values) value { return x[0].Slice([]int{2, 3}, starts(x[0], 1, 9)...) }},
	{"Update", [][]int{{3, 4}, {2, 3}}, func(x values) value { y := x[0].Update(x[1], starts(x[0], 0, 1)...); return y.Mul(y) }},
	{"Take", [][]int{{2, 4, 3}}, func(x values) value { y := hlo.Take(1, x[0], ints(x[0], 2, 0, 3, 3, 3)); return y.Mul(y) }},
	{"TakeAlong", [][]int{{2, 4}}, func(x values) value {
		y := hlo.TakeAlong(1, x[0], ints(x[0], 2, 0, 3, 3, 1))
		return y.Mul(y)
	}},
	{"AddAt", [][]int{{2, 4}, {2, 3}}, func(x values) value { y := hlo.AddAt(1, x[0], ints3(x[0], 0, 3, 3), x[1]); return y.Mul(y) }},
	{"AddAlong", [][]int{{4, 2}, {3, 2}}, func(x values) value {
		y := hlo.AddAlong(0, x[0], ints(x[0], 3, 1, 0, 3, 2, 1, 2), x[1])
		return y.Mul(y)
	}},
	{"SetAt", [][]int{{4, 2}, {2, 2}}, func(x values) value {
		y := hlo.SetAt(0, x[0], x[0].Func().Array(hlo.I32, []float64{3, 1}, 2), x[1])
		return y.Mul(y)
	}},
	{"SetAlong", [][]int{{4, 2}, {2, 2}}, func(x values) value {
		y := hlo.SetAlong(0, x[0], ints(x[0], 2, 0, 3, 3, 1), x[1])
		return y.Mul(y)
	}},
	{"Sort", [][]int{{2, 5}}, func(x values) value { y, _ := hlo.Sort(1, false, x[0]); return y }},
	{"TopK", [][]int{{5, 2}}, func(x values) value { y, _ := hlo.TopK(0, 2, x[0]); return y }},
	{"DotAs", [][]int{{2, 3}, {3, 4}}, func(x values) value { return hlo.DotAs(hlo.F64, x[0], x[1], []int{1}, []int{0}, nil, nil) }},
	{"Scan", [][]int{{2}, {4, 2}, {2}}, func(x values) value {
		y := hlo.Scan(4, values{x[0], x[0].Mul(x[2])}, x[1:2], x[2:], func(i value, c, x, with values) values {
			y := c[0].Mul(x[0]).Add(with[0]).Tanh()
			return values{y.Add(i.As(hlo.F64).MulC(.1)), c[1].Mul(y).Add(with[0])}
		})
		return hlo.Cat(0, y...)
	}},
	{"Scan, one result used", [][]int{{2}}, func(x values) value {
		return hlo.Scan(3, values{x[0], x[0].Exp()}, nil, nil, func(_ value, c, _, _ values) values {
			return values{c[0].Mul(c[1]).Tanh(), c[1].Sin()}
		})[0]
	}},
	{"Scan in Again in Scan", [][]int{{2}, {3, 2, 2}}, func(x values) value {
		return hlo.Scan(3, x[:1], x[1:], nil, func(_ value, c, x, _ values) values {
			return values{hlo.Again(values{c[0], x[0]}, func(in values) value {
				return hlo.Scan(2, in[:1], in[1:], nil, func(_ value, c, x, _ values) values { return values{c[0].Mul(x[0]).Sin()} })[0]
			})}
		})[0]
	}},
	{"Conv", [][]int{{2, 3, 5, 6}, {4, 3, 2, 3}}, func(x values) value { return hlo.Conv(x[0], x[1], hlo.Window{}) }},
	{"Conv of one axis", [][]int{{1, 2, 7}, {3, 2, 2}}, func(x values) value {
		return hlo.Conv(x[0], x[1], hlo.Window{Stride: []int{3}, Pad: [][2]int{{1, 0}}})
	}},
	{"Conv with everything", [][]int{{1, 4, 7, 6}, {6, 2, 3, 2}}, func(x values) value {
		return hlo.Conv(x[0], x[1], hlo.Window{Stride: []int{2, 3}, Dilation: []int{2, 1}, Pad: [][2]int{{2, 1}, {0, 3}}, Groups: 2})
	}},
	{"MaxPool", [][]int{{1, 2, 5, 6}}, func(x values) value {
		return hlo.MaxPool(x[0], hlo.Window{Size: []int{3, 2}, Stride: []int{2, 2}, Pad: [][2]int{{1, 1}, {0, 0}}})
	}},
	{"SumPool", [][]int{{1, 2, 5, 7}}, func(x values) value {
		return hlo.SumPool(x[0], hlo.Window{Size: []int{3, 2}, Stride: []int{2, 3}, Pad: [][2]int{{1, 0}, {0, 1}}})
	}},
	{"unused", [][]int{{2}, {3}}, one(value.Exp)},
}

func dot(ca, cb, ba, bb []int) func(x values) value {
	return func(x values) value { return hlo.Dot(x[0], x[1], ca, cb, ba, bb) }
}

// starts are indices of a slice.
func starts(x value, at ...float64) (list values) {
	for _, i := range at {
		list = append(list, x.Func().Const(hlo.I32, i))
	}
	return list
}

// ints are indices in so many rows, and ints3 in one of three.
func ints(x value, rows int, at ...float64) value {
	return x.Func().Array(hlo.I32, at, rows, len(at)/rows)
}
func ints3(x value, at ...float64) value { return x.Func().Array(hlo.I32, at, 3) }

// index names rows 0, 2, 2 of four.
func index(x value) value {
	f := x.Func()
	return f.Iota(hlo.I32, 0, 3, 1).MulC(2).Min(f.Const(hlo.I32, 2))
}

// Each gradient is that by differences, in float64. The cases are one program: compiling lasts longer than running.
func TestGradients(t *testing.T) {
	c := xlatest.Client(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var f hlo.Func
	var results values
	var x [][]float64 // the operands of all cases
	var dims [][]int
	at := make([]struct{ loss, operand int }, len(differentiable)) // of each case: its loss among the results, its first operand
	for i, tc := range differentiable {
		at[i].loss, at[i].operand = len(results), len(x)
		var args values
		for _, d := range tc.dims {
			arg := f.Arg(hlo.F64, d...)
			v := make([]float64, arg.Len())
			for k := range v {
				v[k] = .3 + rnd.Float64() // positive, for logarithms and roots
			}
			args, x, dims = append(args, arg), append(x, v), append(dims, d)
		}
		y := tc.f(args)
		// Weights, so that errors do not cancel in the sum.
		w := f.Iota(hlo.F64, 0, y.Len()).AddC(1).MulC(.37).Tanh().Reshape(y.Dims()...)
		loss := y.Mul(w).SumAll()
		results = append(append(results, loss), hlo.Grad(loss, args...)...)
	}
	text, err := f.Text("gradients", results...)
	require.NoError(t, err)
	p, err := c.Compile(text, nil)
	require.NoError(t, err)
	defer p.Free()
	run := func() (out [][]float64) {
		var in []*xla.Buffer
		for i, v := range x {
			b, err := xla.Put(c, v, dims[i]...)
			require.NoError(t, err)
			in = append(in, b)
		}
		results, err := p.Run(0, in...)
		require.NoError(t, err)
		for _, b := range results {
			v := make([]float64, b.Len())
			require.NoError(t, xla.Get(b, v))
			out = append(out, v)
		}
		require.NoError(t, xla.FreeAll(append(in, results...)...))
		return out
	}
	exact := run()
	// Element k of the operands of all cases is moved at once, since the cases do not touch each other.
	const h = 1e-5
	worst := make([]float64, len(differentiable))
	for k := 0; ; k++ {
		moved, grad := map[int]*float64{}, map[int]float64{} // by case
		for i, tc := range differentiable {
			n := k
			for j := range tc.dims {
				if v := x[at[i].operand+j]; n >= 0 && n < len(v) {
					moved[i], grad[i] = &v[n], exact[at[i].loss+1+j][n]
				}
				n -= len(x[at[i].operand+j])
			}
		}
		if len(moved) == 0 {
			break
		}
		move := func(by float64) [][]float64 {
			for _, e := range moved {
				*e += by
			}
			defer func() {
				for _, e := range moved {
					*e -= by
				}
			}()
			return run()
		}
		up, down := move(h), move(-h)
		for i, got := range grad {
			want := (up[at[i].loss][0] - down[at[i].loss][0]) / (2 * h)
			worst[i] = max(worst[i], math.Abs(got-want)/(1+math.Abs(want)))
		}
	}
	for i, tc := range differentiable {
		t.Run(tc.name, func(t *testing.T) { require.Less(t, worst[i], 1e-8) })
	}
}
