package hlo

import (
	"fmt"
	"slices"
)

// Reshape has the same elements in the same order, with other dimensions.
func (v *Value) Reshape(dims ...int) *Value {
	if slices.Equal(v.dims, dims) {
		return v
	}
	if v.f.check(v.t, dims); product(dims) != v.Len() {
		v.f.fail("Reshape: %v to %v", v.dims, dims)
	}
	return v.f.op("stablehlo.reshape", "", v.t, slices.Clone(dims),
		func(d *Value) []*Value { return []*Value{d.Reshape(v.dims...)} }, v)
}

// Perm permutes axes: axis i of the result is perm[i] of v.
func (v *Value) Perm(perm ...int) *Value {
	ident := count(0, len(v.dims))
	if !slices.Equal(slices.Sorted(slices.Values(perm)), ident) {
		v.f.fail("Perm: %v is no order of the axes of %v", perm, v.dims)
		return v
	}
	if slices.Equal(perm, ident) {
		return v
	}
	dims, back := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		dims[i], back[p] = v.dims[p], i
	}
	return v.f.op("stablehlo.transpose", "{permutation = "+array(perm)+"}", v.t, dims,
		func(d *Value) []*Value { return []*Value{d.Perm(back...)} }, v)
}

// axis notes an axis that v does not have.
func (v *Value) axis(op string, axes ...int) bool {
	for i, x := range axes {
		if x < 0 || x >= len(v.dims) || slices.Contains(axes[:i], x) {
			v.f.fail("%s: axes %v of %v", op, axes, v.dims)
			return false
		}
	}
	return true
}

// Cut is elements lo to hi, hi excluded, of an axis.
func (v *Value) Cut(axis, lo, hi int) *Value {
	if !v.axis("Cut", axis) {
		return v
	}
	if lo < 0 || hi < lo || hi > v.dims[axis] {
		v.f.fail("Cut: [%d:%d] of axis %d of %v", lo, hi, axis, v.dims)
		return v
	}
	from, to := make([]int, len(v.dims)), slices.Clone(v.dims)
	from[axis], to[axis] = lo, hi
	dims := slices.Clone(v.dims)
	dims[axis] = hi - lo
	return v.f.op("stablehlo.slice", fmt.Sprintf("{start_indices = %s, limit_indices = %s, strides = %s}", array(from),
		array(to), array(slices.Repeat([]int{1}, len(dims)))),
		v.t, dims, func(d *Value) []*Value { return []*Value{d.Pad(axis, lo, v.dims[axis]-hi)} }, v)
}

// Pad adds zeros at the beginning and at the end of an axis.
func (v *Value) Pad(axis, before, after int) *Value {
	if !v.axis("Pad", axis) {
		return v
	}
	if before < 0 || after < 0 {
		v.f.fail("Pad: %d and %d elements", before, after)
		return v
	}
	lo, hi := make([]int, len(v.dims)), make([]int, len(v.dims))
	lo[axis], hi[axis] = before, after
	dims := slices.Clone(v.dims)
	dims[axis] += before + after
	return v.f.op("stablehlo.pad", fmt.Sprintf("{edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s}",
		array(lo), array(hi), array(make([]int, len(dims)))),
		v.t, dims, func(d *Value) []*Value { return []*Value{d.Cut(axis, before, before+v.dims[axis]), nil} }, v,
		v.f.Const(v.t, 0))
}

// Cat joins values along an axis, along which alone they may differ.
func Cat(axis int, in ...*Value) *Value {
	first := in[0]
	if !first.fits("Cat", in...) || !first.axis("Cat", axis) {
		return first
	}
	dims := slices.Clone(first.dims)
	for _, x := range in[1:] {
		other := slices.Clone(x.dims)
		if len(other) == len(dims) {
			dims[axis] += other[axis]
			other[axis] = first.dims[axis]
		}
		if !slices.Equal(other, first.dims) || x.t != first.t {
			first.f.fail("Cat: %s and %s along axis %d", first.text(), x.text(), axis)
			return first
		}
	}
	return first.f.op("stablehlo.concatenate", fmt.Sprintf("{dimension = %d : i64}", axis), first.t, dims,
		func(d *Value) (parts []*Value) {
			at := 0
			for _, x := range in {
				parts = append(parts, d.Cut(axis, at, at+x.dims[axis]))
				at += x.dims[axis]
			}
			return parts
		}, in...)
}
