package hlo

import (
	"fmt"
	"slices"
)

// region is a function of two scalars, for operations that take one.
func region(op string, t Type) string {
	s := typeText(t, nil)
	return fmt.Sprintf("({\n^r(%%l: %s, %%r: %s):\n%%o = \"stablehlo.%s\"(%%l, %%r) : (%s, %s) -> %s\n\"stablehlo.return\"(%%o) : (%s) -> ()\n})", s, s, op, s, s, s, s)
}

func (v *Value) reduce(op string, init *Value, back Gradient, axes []int) *Value {
	dims := []int{}
	for i, d := range v.dims {
		if !slices.Contains(axes, i) {
			dims = append(dims, d)
		}
	}
	return v.f.op("stablehlo.reduce", region(op, v.t)+" {dimensions = "+array(axes)+"}", v.t, dims, back, v, init)
}

// Sum adds over axes, which vanish. No axes: v itself.
func (v *Value) Sum(axes ...int) *Value {
	if len(axes) == 0 || !v.axis("Sum", axes...) {
		return v
	}
	keep := slices.Clone(v.dims)
	for _, x := range axes {
		keep[x] = 1
	}
	return v.reduce("add", v.f.Const(v.t, 0),
		func(d *Value) []*Value { return []*Value{d.Reshape(keep...).To(v.dims...), nil} }, axes)
}

// SumAll adds all elements, to a scalar.
func (v *Value) SumAll() *Value {
	return v.Sum(count(0, len(v.dims))...)
}

// SumLast adds over the last axis, which stays, with the length 1.
func (v *Value) SumLast() *Value {
	if !v.axis("SumLast", len(v.dims)-1) {
		return v
	}
	return v.Sum(len(v.dims) - 1).Reshape(v.lastOne()...)
}

// MeanLast is SumLast divided by the length of the axis.
func (v *Value) MeanLast() *Value {
	if !v.axis("MeanLast", len(v.dims)-1) {
		return v
	}
	return v.SumLast().MulC(1 / float64(max(v.dims[len(v.dims)-1], 1)))
}

// MaxLast is the largest over the last axis, which stays, with the length 1. Its gradient goes to all elements that are
// as large, in equal parts.
func (v *Value) MaxLast() *Value {
	if !v.axis("MaxLast", len(v.dims)-1) {
		return v
	}
	out := v.reduce("maximum", v.f.least(v.t), nil, []int{len(v.dims) - 1}).Reshape(v.lastOne()...)
	return With(out, []*Value{v}, func(d *Value) []*Value {
		hit := v.Cmp("EQ", out).As(v.t)
		return []*Value{hit.Mul(d.Div(hit.SumLast()))}
	})
}

func (v *Value) lastOne() []int { return append(slices.Clone(v.dims[:len(v.dims)-1]), 1) }

// least is less than all numbers of a type.
func (f *Func) least(t Type) *Value {
	bits := map[Type]string{F16: "0xFC00", BF16: "0xFF80", F32: "0xFF800000", F64: "0xFFF0000000000000"}[t]
	if bits == "" {
		f.fail("MaxLast: of %s", t)
		bits = "0"
	}
	return f.op("stablehlo.constant", fmt.Sprintf("{value = dense<%s> : tensor<%s>}", bits, t), t, []int{}, nil)
}

// Rows are the rows of v, [N, C], that an index, [M, 1] of integers, names: [M, C].
func (v *Value) Rows(index *Value) *Value {
	if !v.fits("Rows", index) {
		return v
	}
	if len(v.dims) != 2 || len(index.dims) != 2 || index.dims[1] != 1 || !index.t.integer() {
		v.f.fail("Rows: of %s by %s", v.text(), index.text())
		return v
	}
	return v.f.op("stablehlo.gather", fmt.Sprintf("{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "+
		"index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, %d>}", v.dims[1]), v.t,
		[]int{index.dims[0], v.dims[1]},
		func(d *Value) []*Value { return []*Value{v.f.Const(v.t, 0).To(v.dims...).AddRows(index, d), nil} }, v, index)
}

// AddRows adds rows, [M, C], to the rows of v, [N, C], that the index, [M, 1], names, as often as it does.
func (v *Value) AddRows(index, rows *Value) *Value {
	if !v.fits("AddRows", index, rows) {
		return v
	}
	if len(v.dims) != 2 || len(index.dims) != 2 || index.dims[1] != 1 || !index.t.integer() || rows.t != v.t ||
		!slices.Equal(rows.dims, []int{index.dims[0], v.dims[1]}) {
		v.f.fail("AddRows: %s to %s by %s", rows.text(), v.text(), index.text())
		return v
	}
	return v.f.op("stablehlo.scatter",
		region("add", v.t)+" {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "+
			"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}",
		v.t, v.dims,
		func(d *Value) []*Value { return []*Value{d, nil, d.Rows(index)} }, v, index, rows)
}
