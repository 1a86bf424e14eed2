package hlo

import (
	"fmt"
	"math"
)

// Sort sorts along an axis, ascending or descending, and says where each element was, of I32. Equal elements
// stay in their order; NaN counts as the largest. The gradient is that of sorted.
func Sort(axis int, descending bool, v *Value) (sorted, index *Value) {
	f := v.f
	if f.err != nil || !v.axis("Sort", axis) {
		return v, v
	}
	key, how, order := v, "LT", "SIGNED"
	switch {
	case !v.t.integer(): // NaN of one sign, and zeros, too
		key = If(v.Cmp("NE", v), f.Const(v.t, math.NaN()), If(v.Cmp("EQ", f.Const(v.t, 0)), f.Const(v.t, 0), v))
		order = "TOTALORDER"
	case v.t[0] == 'u' || v.t == Bool:
		order = "UNSIGNED"
	}
	if descending {
		how = "GT"
	}
	index = f.value(I32, v.dims, nil)
	sorted = f.value(v.t, v.dims, []*Value{v})
	sorted.back = func(d *Value) []*Value { return []*Value{AddAlong(axis, f.zeros(v), index, d)} }
	t, i := typeText(v.t, nil), typeText(I32, nil)
	region := fmt.Sprintf("({\n^c(%%a: %s, %%b: %s, %%i: %s, %%j: %s):\n%%o = \"stablehlo.compare\"(%%a, %%b) {comparison_direction = "+
		"#stablehlo<comparison_direction %s>, compare_type = #stablehlo<comparison_type %s>} : (%s, %s) -> tensor<i1>\n"+
		"\"stablehlo.return\"(%%o) : (tensor<i1>) -> ()\n})", t, t, i, i, how, order, t, t)
	f.write([]*Value{sorted, index}, "stablehlo.sort", fmt.Sprintf("%s {dimension = %d : i64, is_stable = true}", region, axis),
		[]*Value{key, f.Iota(I32, axis, v.dims...)})
	return sorted, index
}

// TopK are the k largest along an axis, descending, and where they were.
func TopK(axis, k int, v *Value) (largest, index *Value) {
	largest, index = Sort(axis, true, v)
	return largest.Cut(axis, 0, k), index.Cut(axis, 0, k)
}
