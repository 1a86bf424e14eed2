package hlo

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

// Again is what of returns, and is computed once more from in for its gradient: what of makes in
// between need not be kept until then. It is activation checkpointing, as jax.checkpoint has it.
// Only in has a gradient: what of takes from elsewhere counts as constant.
func Again(in []*Value, of func(in []*Value) *Value) *Value {
	out := of(in)
	if !out.fits("Again", in...) || len(in) == 0 {
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
