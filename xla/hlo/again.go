package hlo

import "slices"

// barrier are the values in, behind a point that no operation is moved across. What is computed of
// them is not taken for what is computed of in.
func barrier(in []*Value) []*Value {
	out := make([]*Value, len(in))
	for i, v := range in {
		out[i] = v.f.value(v.t, v.dims, nil) // a gradient ends here
	}
	in[0].f.write(out, "stablehlo.optimization_barrier", "", in)
	return out
}

// Again is what of returns, and is computed once more from in for its gradient: what of makes in between need
// not be kept until then. It is activation checkpointing, as jax.checkpoint has it. Only in has a gradient.
// That of takes another value that depends on an argument is an error, unless by Stop: its gradient would be
// lost.
func Again(in []*Value, of func(in []*Value) *Value) *Value {
	if len(in) == 0 {
		return of(in)
	}
	before := in[0].f.made
	out := of(in)
	if !out.fits("Again", in...) || out.f.caught("Again", before, in, out) {
		return out
	}
	return With(out, in, func(d *Value) []*Value {
		kept := barrier(append(append([]*Value{}, in...), d)) // d, too: else it could be computed before there is a gradient
		d, from := kept[len(in)], kept[:len(in)]
		y := of(from)
		wide := F32
		if y.t == F64 {
			wide = F64
		}
		return Grad(y.As(wide).Mul(d.As(wide)).SumAll(), from...)
	})
}

// outside are the values that a function has taken from outside, beside in. before is how many values there were when
// the function was called, and out what it has returned.
func outside(before int, in []*Value, out ...*Value) (taken []*Value) {
	seen := map[*Value]bool{}
	for _, v := range in {
		seen[v] = true
	}
	stack := slices.Clone(out)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch {
		case seen[v]:
		case v.made > before:
			stack = append(stack, v.in...)
		default:
			taken = append(taken, v)
		}
		seen[v] = true
	}
	return taken
}

// caught notes a value that a function has taken from outside, beside in, though it depends on an argument.
func (f *Func) caught(op string, before int, in []*Value, out ...*Value) bool {
	for _, v := range outside(before, in, out...) {
		if v.depends() {
			f.fail("%s: its function takes %s from outside, whose gradient would be lost: give it among its inputs, "+
				"or Stop it", op, v.text())
			return true
		}
	}
	return false
}

// depends reports whether a gradient of v could reach an argument of floating point.
func (v *Value) depends() bool {
	seen := map[*Value]bool{}
	stack := []*Value{v}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[v] || v.t.integer() {
			continue
		}
		seen[v] = true
		if v.leaf {
			return true
		}
		if v.back != nil {
			stack = append(stack, v.in...)
		}
	}
	return false
}
