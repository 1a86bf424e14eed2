package hlo_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla/hlo"
)

type (
	program = *hlo.Func
	value   = *hlo.Value
	values  = []value
)

func TestText(t *testing.T) {
	var f hlo.Func
	x, w := f.Donated(0, hlo.F32, 2, 3), f.Arg(hlo.F32, 3)
	text, err := f.Text("step", x.Add(w).Reshape(2, 3))
	require.NoError(t, err)
	require.Equal(t, `module @step {
func.func @main(%a0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<3xf32>) -> (tensor<2x3xf32>) {
%1 = "stablehlo.broadcast_in_dim"(%a1) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> (tensor<2x3xf32>)
%2 = "stablehlo.add"(%a0, %1)  : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>)
return %2 : tensor<2x3xf32>
}
}
`, text)
	require.Equal(t, []int{2, 3}, x.Dims())
	require.Equal(t, 6, x.Len())
	require.Equal(t, 2, x.Rank())
	require.Equal(t, hlo.F32, x.Type())
	require.Same(t, &f, x.Func())
}

// Products have the precision that is set when they are written, and their gradients too.
func TestPrecision(t *testing.T) {
	var f hlo.Func
	x := f.Arg(hlo.F32, 2, 2)
	plain := hlo.Dot(x, x, []int{1}, []int{0}, nil, nil)
	f.Precision = "HIGHEST"
	loss := hlo.Dot(plain, x, []int{1}, []int{0}, nil, nil).SumAll()
	text, err := f.Text("t", hlo.Grad(loss, x)...)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(text, "dot_general"))
	require.Equal(t, 5, strings.Count(text, "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"))
}

// What does not fit is told, with the line of the program that made it, and nothing panics.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(f program) value
		want string
	}{
		{"types", func(f program) value { return f.Arg(hlo.F32, 2).Add(f.Arg(hlo.BF16, 2)) }, "add: tensor<2xf32> and tensor<2xbf16>"},
		{"no type", func(f program) value { return f.Arg("float", 2) }, `"float" is no type`},
		{"dimensions", func(f program) value { return f.Arg(hlo.F32, 2).Mul(f.Arg(hlo.F32, 3)) }, "To: [3] cannot be broadcast to [2]"},
		{"negative", func(f program) value { return f.Arg(hlo.F32, -2) }, "dimensions [-2]"},
		{"reshape", func(f program) value { return f.Arg(hlo.F32, 2).Reshape(3) }, "Reshape: [2] to [3]"},
		{"perm", func(f program) value { return f.Arg(hlo.F32, 2, 3).Perm(0, 2) }, "Perm: [0 2] is no order of the axes of [2 3]"},
		{"cut", func(f program) value { return f.Arg(hlo.F32, 2).Cut(0, 1, 3) }, "Cut: [1:3] of axis 0 of [2]"},
		{"cut's axis", func(f program) value { return f.Arg(hlo.F32, 2).Cut(1, 0, 1) }, "Cut: axes [1] of [2]"},
		{"pad", func(f program) value { return f.Arg(hlo.F32, 2).Pad(0, -1, 1) }, "Pad: -1 and 1 elements"},
		{"cat", func(f program) value { return hlo.Cat(0, f.Arg(hlo.F32, 2, 2), f.Arg(hlo.F32, 2, 3)) }, "Cat: tensor<2x2xf32> and tensor<2x3xf32> along axis 0"},
		{"sum", func(f program) value { return f.Arg(hlo.F32, 2).Sum(0, 0) }, "Sum: axes [0 0] of [2]"},
		{"scalar", func(f program) value { return f.Arg(hlo.F32).SumLast() }, "SumLast: axes [-1] of []"},
		{"max", func(f program) value { return f.Arg(hlo.F32, 2).MaxOver(1) }, "MaxOver: axes [1] of [2]"},
		{"array", func(f program) value { return f.Array(hlo.F32, []float64{1, 2}, 3) }, "Array: 2 elements for [3]"},
		{"infinity", func(f program) value { return f.Const(hlo.F8E4M3, math.Inf(1)) }, "Const: +Inf is no f8E4M3FN"},
		{"precision", func(f program) value {
			f.Precision = "HIGHER"
			x := f.Arg(hlo.F32, 2)
			return hlo.Dot(x, x, []int{0}, []int{0}, nil, nil)
		}, `"HIGHER" is no precision`},
		{"bits", func(f program) value { return f.Arg(hlo.F32, 2).And(f.Arg(hlo.F32, 2)) }, "and: of tensor<2xf32>"},
		{"state", func(f program) value { _, x := hlo.Random(f.Arg(hlo.U32, 2), hlo.U32, 3); return x }, "Random: tensor<3xui32> by a state of tensor<2xui32>"},
		{"slice", func(f program) value {
			return f.Arg(hlo.F32, 2, 3).Slice([]int{1, 4}, f.Arg(hlo.I32), f.Arg(hlo.I32))
		}, "Slice: [1 4] of [2 3], at 2 indices"},
		{"update", func(f program) value { return f.Arg(hlo.F32, 2).Update(f.Arg(hlo.F64, 1), f.Arg(hlo.I32)) }, "Update: tensor<2xf32> by tensor<1xf64>"},
		{"take", func(f program) value { return hlo.Take(1, f.Arg(hlo.F32, 2, 3), f.Arg(hlo.F32, 2)) }, "Take: of tensor<2x3xf32> by tensor<2xf32>"},
		{"along", func(f program) value { return hlo.TakeAlong(1, f.Arg(hlo.F32, 2, 3), f.Arg(hlo.I32, 1, 3)) }, "TakeAlong: of tensor<2x3xf32> by tensor<1x3xi32>"},
		{"set", func(f program) value {
			return hlo.SetAt(0, f.Arg(hlo.F32, 2, 3), f.Arg(hlo.I32, 1), f.Arg(hlo.F32, 2, 3))
		}, "SetAt: tensor<2x3xf32> to tensor<2x3xf32> by tensor<1xi32>"},
		{"sort", func(f program) value { x, _ := hlo.Sort(1, true, f.Arg(hlo.F32, 2)); return x }, "Sort: axes [1] of [2]"},
		{"loop", func(f program) value {
			return hlo.While(values{f.Arg(hlo.F32)}, func(x values) value { return x[0] }, func(x values) values { return x })[0]
		}, "While: the condition is no scalar of i1"},
		{"loop's shapes", func(f program) value {
			return hlo.Scan(2, values{f.Arg(hlo.F32)}, nil, nil, func(_ value, c, _, _ values) values { return values{c[0].To(2)} })[0]
		}, "Scan: its function returns [tensor<2xf32>], where it is given [tensor<f32>]"},
		{"loop's parts", func(f program) value {
			return hlo.Scan(2, values{f.Arg(hlo.F32)}, values{f.Arg(hlo.F32, 3)}, nil, nil)[0]
		}, "Scan: 2 steps over tensor<3xf32>"},
		{"out of a loop", func(f program) value {
			var kept value
			hlo.Scan(2, values{f.Arg(hlo.F32)}, nil, nil, func(_ value, c, _, _ values) values { kept = c[0].Exp(); return c })
			return kept.Neg()
		}, "a value that the function of a loop has made, tensor<f32>, is used outside of it"},
		{"gradient of a loop", func(f program) value {
			x := f.Arg(hlo.F32)
			y := hlo.While(values{x}, func(x values) value { return x[0].Cmp("LT", f.Const(hlo.F32, 9)) },
				func(x values) values { return values{x[0].Add(x[0])} })[0]
			return hlo.Grad(y, x)[0]
		}, "Grad: of a While, which has no gradient"},
		{"gradient of what a loop takes", func(f program) value {
			x, one := f.Arg(hlo.F32), f.Const(hlo.F32, 1)
			y := hlo.While(values{one}, func(x values) value { return x[0].Cmp("LT", f.Const(hlo.F32, 9)) },
				func(y values) values { return values{y[0].Add(x.Exp())} })[0]
			return hlo.Grad(y, x)[0]
		}, "Grad: of a While, which has no gradient"},
		{"nothing in a loop", func(f program) value {
			return hlo.Scan(2, values{f.Arg(hlo.F32)}, nil, nil, func(_ value, c, _, _ values) values { return values{nil} })[0]
		}, "Scan: its function returns [], where it is given [tensor<f32>]"},
		{"no condition", func(f program) value {
			return hlo.While(values{f.Arg(hlo.F32)}, func(x values) value { return nil }, func(x values) values { return x })[0]
		}, "the function of a loop returns a value that is nil"},
		{"no steps", func(f program) value { return hlo.Scan(0, values{f.Arg(hlo.F32)}, nil, nil, nil)[0] }, "Scan: 0 steps"},
		{"convolution", func(f program) value {
			return hlo.Conv(f.Arg(hlo.F32, 1, 3, 4), f.Arg(hlo.F32, 2, 2, 2), hlo.Window{})
		}, "Conv: tensor<1x3x4xf32> by tensor<2x2x2xf32> in 1 groups"},
		{"window", func(f program) value { return hlo.MaxPool(f.Arg(hlo.F32, 1, 3, 4), hlo.Window{Size: []int{5}}) }, "MaxPool: of tensor<1x3x4xf32>: window [5]"},
		{"caught", func(f program) value {
			x, w := f.Arg(hlo.F32), f.Arg(hlo.F32)
			y := w.Exp()
			return hlo.Again(values{x}, func(in values) value { return in[0].Mul(y.Neg()) })
		}, "Again: its function takes tensor<f32> from outside, whose gradient would be lost"},
		{"caught in a loop", func(f program) value {
			x, w := f.Arg(hlo.F32), f.Arg(hlo.F32)
			return hlo.Scan(2, values{x}, nil, nil, func(_ value, c, _, _ values) values { return values{c[0].Mul(w)} })[0]
		}, "Scan: its function takes tensor<f32> from outside, whose gradient would be lost"},
		{"compare", func(f program) value { return f.Arg(hlo.F32, 2).Cmp("==", f.Arg(hlo.F32, 2)) }, `Cmp: "==" is no comparison`},
		{"if", func(f program) value { return hlo.If(f.Arg(hlo.F32), f.Arg(hlo.F32), f.Arg(hlo.F32)) }, "If: the condition is tensor<f32>"},
		{"rows", func(f program) value { return f.Arg(hlo.F32, 4, 3).Rows(f.Arg(hlo.I32, 2)) }, "Rows: of tensor<4x3xf32> by tensor<2xi32>"},
		{"add rows", func(f program) value {
			return f.Arg(hlo.F32, 4, 3).AddRows(f.Arg(hlo.I32, 2, 1), f.Arg(hlo.F32, 2, 2))
		}, "AddRows: tensor<2x2xf32> to tensor<4x3xf32> by tensor<2xi32>"},
		{"dot", func(f program) value {
			return hlo.Dot(f.Arg(hlo.F32, 2, 3), f.Arg(hlo.F32, 2, 3), []int{1}, []int{0}, nil, nil)
		}, "Dot: tensor<2x3xf32> and tensor<2x3xf32>, axes [1] and [0] contracted"},
		{"dot's axis", func(f program) value {
			return hlo.Dot(f.Arg(hlo.F32, 2, 3), f.Arg(hlo.F32, 3), []int{2}, []int{0}, nil, nil)
		}, "Dot: axes [2] of [2 3]"},
		{"iota", func(f program) value { return f.Iota(hlo.I32, 1, 3) }, "Iota: axis 1 of [3]"},
		{"constant", func(f program) value { return f.Const(hlo.I32, math.NaN()) }, "Const: NaN is no i32"},
		{"gradient", func(f program) value { x := f.Arg(hlo.F32, 2); return hlo.Grad(x, x)[0] }, "Grad: of tensor<2xf32>: it must be a scalar"},
		{"own gradient", func(f program) value {
			x := f.Arg(hlo.F32, 2)
			y := hlo.With(x.SumAll(), values{x}, func(d value) values { return values{d} })
			return hlo.Grad(y, x)[0]
		}, "Grad: a gradient of tensor<f32> for tensor<2xf32>"},
		{"own gradients", func(f program) value {
			x := f.Arg(hlo.F32, 2)
			return hlo.Grad(hlo.With(x.SumAll(), values{x}, func(value) values { return nil }), x)[0]
		}, "Grad: a gradient of 0 parts for 1 inputs"},
		{"donated", func(f program) value { return f.Donated(-1, hlo.F32) }, "donated to result -1"},
		{"call", func(f program) value {
			return f.Call("x", "", nil, [][]int{{0}}, []hlo.Array{{Type: hlo.F32, Dims: []int{1}}}, f.Arg(hlo.F32, 1))[0]
		}, "Call: 1 operands with 0 layouts, 1 results with 1"},
		{"two programs", func(f program) value { return f.Arg(hlo.F32).Add(new(hlo.Func).Arg(hlo.F32)) }, "add: an operand is of another program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f hlo.Func
			v := tc.make(&f)
			_, err := f.Text("t", v)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "hlo: hlo_test.go:")
			require.Equal(t, err, f.Err())
			_, err = f.Text("t", v.Exp().SumAll()) // the first error stays
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestTextErrors(t *testing.T) {
	for _, tc := range []struct {
		name    string
		program string
		results func(f program) values
		want    string
	}{
		{"name", "a-b", func(f program) values { return values{f.Arg(hlo.F32)} }, `the name "a-b" of a program`},
		{"nothing", "a", func(*hlo.Func) values { return nil }, "without results"},
		{"nil", "a", func(*hlo.Func) values { return values{nil} }, "result 0 of program a is of another program"},
		{"donated", "a", func(f program) values { return values{f.Donated(1, hlo.F32)} }, "donated to result 1, but there are 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f hlo.Func
			_, err := f.Text(tc.program, tc.results(&f)...)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// No text of a program's can end the string that it is in.
func TestCallQuotes(t *testing.T) {
	var f hlo.Func
	out := f.Call(`a"b\`, "{\n\"x\": 1}", [][]int{{0}}, [][]int{{0}}, []hlo.Array{{Type: hlo.F32, Dims: []int{1}}}, f.Arg(hlo.F32, 1))
	text, err := f.Text("t", out...)
	require.NoError(t, err)
	require.Contains(t, text, `call_target_name = "a\22b\5C", backend_config = "{\0A\22x\22: 1}"`)
}
