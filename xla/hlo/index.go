package hlo

import (
	"fmt"
	"slices"
)

// starts are indices for a slice of these lengths, one for each axis.
func (v *Value) starts(op string, lengths []int, at []*Value) bool {
	if !v.fits(op, at...) {
		return false
	}
	ok := len(at) == len(v.dims) && len(lengths) == len(v.dims)
	for i, x := range at {
		ok = ok && len(x.dims) == 0 && x.t.integer() && x.t == at[0].t && lengths[i] >= 0 && lengths[i] <= v.dims[i]
	}
	if !ok {
		v.f.fail("%s: %v of %v, at %d indices: want a scalar of an integer type for each axis", op, lengths, v.dims, len(at))
	}
	return ok
}

// Slice is a part of v with these lengths, that begins at indices which the program computes, a scalar for each axis.
// A part that would reach beyond an end begins as much before.
func (v *Value) Slice(lengths []int, at ...*Value) *Value {
	if !v.starts("Slice", lengths, at) {
		return v
	}
	attributes := "{slice_sizes = " + array(lengths) + "}"
	return v.f.op("stablehlo.dynamic_slice", attributes, v.t, slices.Clone(lengths), func(d *Value) []*Value {
		return append([]*Value{v.f.zeros(v).Update(d, at...)}, make([]*Value, len(at))...)
	}, append([]*Value{v}, at...)...)
}

// Update is v with a part replaced by x, from indices on as Slice has them.
func (v *Value) Update(x *Value, at ...*Value) *Value {
	if !v.fits("Update", x) || !v.starts("Update", x.dims, at) {
		return v
	}
	if x.t != v.t {
		v.f.fail("Update: %s by %s", v.text(), x.text())
		return v
	}
	return v.f.op("stablehlo.dynamic_update_slice", "", v.t, v.dims, func(d *Value) []*Value {
		g := []*Value{d.Update(v.f.zeros(x), at...), d.Slice(x.dims, at...)}
		return append(g, make([]*Value, len(at))...)
	}, append([]*Value{v, x}, at...)...)
}

// Take is v with an axis replaced by those of index, whose integers say which elements of it: rows of a table
// are Take(0, table, rows). An index out of range counts as the nearest; its gradient is lost.
func Take(axis int, v, index *Value) *Value { return v.take("Take", axis, index, false) }

// TakeAlong is the elements of v that index says along an axis: out[i][j] = v[index[i][j]][j] for axis 0. All
// other axes are of one length in v and index.
func TakeAlong(axis int, v, index *Value) *Value { return v.take("TakeAlong", axis, index, true) }

// AddAt adds x to v where Take would take it from, as often as index says. Sums of 16-bit types are rounded once.
// What index puts out of range is lost.
func AddAt(axis int, v, index, x *Value) *Value { return v.put("AddAt", axis, index, x, false, true) }

// AddAlong adds x to v where TakeAlong would take it from, as AddAt does.
func AddAlong(axis int, v, index, x *Value) *Value {
	return v.put("AddAlong", axis, index, x, true, true)
}

// SetAt is v with x where Take would take it from. Where index names a place twice, one of the two is there, and both
// get its gradient.
func SetAt(axis int, v, index, x *Value) *Value { return v.put("SetAt", axis, index, x, false, false) }

// SetAlong is v with x where TakeAlong would take it from, as SetAt has it.
func SetAlong(axis int, v, index, x *Value) *Value {
	return v.put("SetAlong", axis, index, x, true, false)
}

// Rows are the rows of v, [N, C], that an index, [M, 1] of integers, names: [M, C].
func (v *Value) Rows(index *Value) *Value { return v.take("Rows", 0, v.row("Rows", index), false) }

// AddRows adds rows, [M, C], to the rows of v, [N, C], that the index, [M, 1], names, as often as it does, as
// AddAt does.
func (v *Value) AddRows(index, rows *Value) *Value {
	return v.put("AddRows", 0, v.row("AddRows", index), rows, false, true)
}

// row is an index of rows, without its last axis.
func (v *Value) row(op string, index *Value) *Value {
	if v.fits(op, index) && (len(v.dims) != 2 || len(index.dims) != 2 || index.dims[1] != 1) {
		v.f.fail("%s: of %s by %s", op, v.text(), index.text())
	}
	if v.f.err != nil {
		return index
	}
	return index.Reshape(index.dims[0])
}

// indexed are the dimensions of v's elements by an index, and the window in them: the axes that v has beside axis.
func (v *Value) indexed(op string, axis int, index *Value, along bool) (dims, window []int, ok bool) {
	if !v.fits(op, index) || !v.axis(op, axis) {
		return nil, nil, false
	}
	ok = index.t.integer() && index.t != Bool
	if along {
		dims = slices.Clone(index.dims)
		want := slices.Clone(v.dims)
		if len(dims) == len(want) {
			want[axis] = dims[axis]
		}
		ok = ok && slices.Equal(dims, want)
	} else {
		dims = slices.Concat(v.dims[:axis], index.dims, v.dims[axis+1:])
		window = slices.Concat(count(0, axis), count(axis+len(index.dims), len(v.dims)-axis-1))
	}
	if !ok {
		v.f.fail("%s: of %s by %s", op, v.text(), index.text())
	}
	return dims, window, ok
}

// others are the axes of v but one, if all of them are.
func (v *Value) others(axis int, all bool) []int {
	if !all {
		return nil
	}
	return slices.Concat(count(0, axis), count(axis+1, len(v.dims)-axis-1))
}

func (v *Value) take(op string, axis int, index *Value, along bool) *Value {
	dims, window, ok := v.indexed(op, axis, index, along)
	if !ok {
		return v
	}
	sizes := slices.Clone(v.dims)
	sizes[axis] = 1
	beside := v.others(axis, along)
	for _, i := range beside {
		sizes[i] = 1
	}
	attributes := fmt.Sprintf("{dimension_numbers = #stablehlo.gather<offset_dims = [%s], collapsed_slice_dims = [%d], "+
		"operand_batching_dims = [%s], start_indices_batching_dims = [%s], start_index_map = [%d], index_vector_dim = %d>, "+
		"indices_are_sorted = false, slice_sizes = %s}", list(window), axis, list(beside), list(beside), axis,
		len(index.dims), array(sizes))
	return v.f.op("stablehlo.gather", attributes,
		v.t, dims, func(d *Value) []*Value {
			return []*Value{v.f.zeros(v).put(op, axis, index, d, along, true), nil}
		}, v, index)
}

func (v *Value) put(op string, axis int, index, x *Value, along, add bool) *Value {
	dims, window, ok := v.indexed(op, axis, index, along)
	if !ok || !v.fits(op, x) {
		return v
	}
	if x.t != v.t || !slices.Equal(x.dims, dims) {
		v.f.fail("%s: %s to %s by %s", op, x.text(), v.text(), index.text())
		return v
	}
	if add && v.t.narrow() {
		return v.As(F32).put(op, axis, index, x.As(F32), along, true).As(v.t)
	}
	beside, t, how := v.others(axis, along), typeText(v.t, nil), region("add", v.t)
	if !add {
		how = fmt.Sprintf("({\n^r(%%l: %s, %%r: %s):\n\"stablehlo.return\"(%%r) : (%s) -> ()\n})", t, t, t)
	}
	attributes := fmt.Sprintf("%s {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [%s], "+
		"inserted_window_dims = [%d], input_batching_dims = [%s], scatter_indices_batching_dims = [%s], "+
		"scatter_dims_to_operand_dims = [%d], index_vector_dim = %d>, indices_are_sorted = false, unique_indices = false}",
		how, list(window), axis, list(beside), list(beside), axis, len(index.dims))
	return v.f.op("stablehlo.scatter", attributes, v.t, v.dims, func(d *Value) []*Value {
		if add {
			return []*Value{d, nil, d.take(op, axis, index, along)}
		}
		rest := d.put(op, axis, index, v.f.zeros(x), along, false)
		return []*Value{rest, nil, d.take(op, axis, index, along)}
	}, v, index, x)
}
