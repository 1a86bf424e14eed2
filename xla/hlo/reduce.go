package hlo

import (
	"fmt"
	"math"
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

// kept are v's dimensions, with the length 1 of axes.
func (v *Value) kept(axes []int) []int {
	keep := slices.Clone(v.dims)
	for _, x := range axes {
		keep[x] = 1
	}
	return keep
}

// Sum adds over axes, which vanish. No axes: v itself. Sums of 16-bit types are rounded once.
func (v *Value) Sum(axes ...int) *Value {
	if len(axes) == 0 || !v.axis("Sum", axes...) {
		return v
	}
	if v.t.narrow() {
		return v.As(F32).Sum(axes...).As(v.t)
	}
	keep := v.kept(axes)
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

// MeanLast is Mean over the last axis, which stays, with the length 1.
func (v *Value) MeanLast() *Value {
	if !v.axis("MeanLast", len(v.dims)-1) {
		return v
	}
	return v.Mean(len(v.dims) - 1).Reshape(v.lastOne()...)
}

// Mean is Sum divided by the number of elements. It is finite where v is, though the sum may not be.
func (v *Value) Mean(axes ...int) *Value {
	if len(axes) == 0 || !v.axis("Mean", axes...) {
		return v
	}
	if v.t.narrow() {
		return v.As(F32).Mean(axes...).As(v.t)
	}
	n := 1
	for _, x := range axes {
		n *= v.dims[x]
	}
	return v.Sum(axes...).MulC(1 / float64(max(n, 1)))
}

// MaxLast is MaxOver of the last axis, which stays, with the length 1.
func (v *Value) MaxLast() *Value {
	if !v.axis("MaxLast", len(v.dims)-1) {
		return v
	}
	return v.MaxOver(len(v.dims) - 1).Reshape(v.lastOne()...)
}

// MaxOver is the largest over axes, which vanish: NaN if there is one. Its gradient goes to all elements that
// are as large, in equal parts.
func (v *Value) MaxOver(axes ...int) *Value { return v.extreme("MaxOver", "maximum", axes) }

// MinOver is the smallest, as MaxOver has the largest.
func (v *Value) MinOver(axes ...int) *Value { return v.extreme("MinOver", "minimum", axes) }

func (v *Value) extreme(name, op string, axes []int) *Value {
	if len(axes) == 0 || !v.axis(name, axes...) {
		return v
	}
	first := v.t.least()
	if op == "minimum" {
		first = v.t.largest()
	}
	out := v.reduce(op, v.f.Const(v.t, first), nil, axes)
	if v.t.integer() {
		return out
	}
	// XLA's plugin for CPUs may lose a NaN: see limit.
	some := v.Cmp("NE", v)
	out = If(some.reduce("or", v.f.Const(Bool, 0), nil, axes), v.f.Const(v.t, math.NaN()), out)
	return With(out, []*Value{v}, func(d *Value) []*Value {
		keep := v.kept(axes)
		hit := v.Cmp("EQ", out.Reshape(keep...)).As(v.t)
		return []*Value{hit.Mul(d.Reshape(keep...).Div(hit.Sum(axes...).Reshape(keep...)))}
	})
}

// Softmax is exp(v) divided by its sum over the last axis.
func (v *Value) Softmax() *Value {
	if !v.axis("Softmax", len(v.dims)-1) {
		return v
	}
	e := v.Sub(Stop(v.top())).Exp()
	return e.Div(e.SumLast())
}

// LogSumExp is the logarithm of the sum of exp(v) over the last axis, which stays, with the length 1.
func (v *Value) LogSumExp() *Value {
	if !v.axis("LogSumExp", len(v.dims)-1) {
		return v
	}
	top, zero := v.top(), v.f.Const(v.t, 0)
	top = If(top.Sub(top).Cmp("EQ", zero), top, zero) // where all are -Inf, so is the result
	return v.Sub(top).Exp().SumLast().Log().Add(top)
}

// top is the largest over the last axis, without a gradient. A NaN may be lost: it comes back when v is subtracted.
func (v *Value) top() *Value {
	return v.reduce("maximum", v.f.Const(v.t, math.Inf(-1)), nil, []int{len(v.dims) - 1}).Reshape(v.lastOne()...)
}

// ArgMax is the index of the largest element over an axis, which vanishes, of I32: the first of several, and
// of a NaN if there is one. It has no gradient.
func ArgMax(axis int, v *Value) *Value {
	if !v.axis("ArgMax", axis) {
		return v
	}
	top := Stop(v.MaxOver(axis)).Reshape(v.kept([]int{axis})...)
	hit := v.Cmp("EQ", top).Or(v.Cmp("NE", v))
	n := v.f.Const(I32, float64(v.dims[axis]))
	return If(hit, v.f.Iota(I32, axis, v.dims...), n).MinOver(axis)
}

// Cumsum is the sums of the elements of an axis up to each. Sums of 16-bit types are rounded once.
func Cumsum(axis int, v *Value) *Value {
	if !v.axis("Cumsum", axis) {
		return v
	}
	if v.t.narrow() {
		return Cumsum(axis, v.As(F32)).As(v.t)
	}
	for k := 1; k < v.dims[axis]; k *= 2 { // element i is the sum of 2k of them now
		v = v.Add(v.Cut(axis, 0, v.dims[axis]-k).Pad(axis, k, 0))
	}
	return v
}

func (v *Value) lastOne() []int { return append(slices.Clone(v.dims[:len(v.dims)-1]), 1) }
