package main

import "github.com/mmcloughlin/avo/build"

// kernels lists what is made for g. Signed and unsigned integers share their sums
// and products, which are the same modulo 2^n.
func kernels(g *gen) []kernel {
	type row struct {
		name string
		elem elem
		sum  op
		prod op
		min  op
		max  op
	}
	f32 := [...]op{ins(ctx.VADDPS), ins(ctx.VMULPS), g.float32s(least), g.float32s(greatest)}
	rows := []row{
		{"Int8", raw(1), ins(ctx.VPADDB), prodInt8, ins(ctx.VPMINSB), ins(ctx.VPMAXSB)},
		{"Uint8", raw(1), op{}, op{}, ins(ctx.VPMINUB), ins(ctx.VPMAXUB)},
		{"Int16", raw(2), ins(ctx.VPADDW), ins(ctx.VPMULLW), ins(ctx.VPMINSW), ins(ctx.VPMAXSW)},
		{"Uint16", raw(2), op{}, op{}, ins(ctx.VPMINUW), ins(ctx.VPMAXUW)},
		{"Int32", raw(4), ins(ctx.VPADDD), ins(ctx.VPMULLD), ins(ctx.VPMINSD), ins(ctx.VPMAXSD)},
		{"Uint32", raw(4), op{}, op{}, ins(ctx.VPMINUD), ins(ctx.VPMAXUD)},
		{"Float32", raw(4), f32[0], f32[1], f32[2], f32[3]},
		{"Float64", raw(8), ins(ctx.VADDPD), ins(ctx.VMULPD), g.float64s(least), g.float64s(greatest)},
		{"Float16", half{}, f32[0], f32[1], f32[2], f32[3]},
		{"BFloat16", bfloat{round: true}, f32[0], f32[1], op{}, op{}},
		{"BFloat16", bfloat{}, op{}, op{}, f32[2], f32[3]},
	}
	if g.evex {
		rows = append(rows,
			row{"Int64", raw(8), ins(ctx.VPADDQ), ins(ctx.VPMULLQ), ins(ctx.VPMINSQ), ins(ctx.VPMAXSQ)},
			row{"Uint64", raw(8), op{}, op{}, ins(ctx.VPMINUQ), ins(ctx.VPMAXUQ)})
	} else {
		rows = append(rows,
			row{"Int64", raw(8), ins(ctx.VPADDQ), prodInt64, int64s(least), int64s(greatest)},
			row{"Uint64", raw(8), op{}, op{}, uint64s(least), uint64s(greatest)})
	}

	var ks []kernel
	for _, r := range rows {
		for _, o := range []struct {
			name, expr string
			op         op
		}{
			{"sum", "a[i] + b[i]", r.sum},
			{"prod", "a[i] * b[i]", r.prod},
			{"min", "min(a[i], b[i])", r.min},
			{"max", "max(a[i], b[i])", r.max},
		} {
			if o.op.do != nil {
				ks = append(ks, kernel{name: o.name + r.name, does: o.expr, elem: r.elem, op: o.op})
			}
		}
	}
	for _, r := range rows {
		switch r.name {
		case "Int32", "Int64", "Float32", "Float64":
			ks = append(ks,
				kernel{name: "streamSum" + r.name, does: "a[i] + b[i]", elem: r.elem, op: r.sum, stream: true},
				kernel{name: "streamBoth" + r.name, form: both, does: "a[i] + b[i]", elem: r.elem, op: r.sum, stream: true})
		}
	}
	for _, s := range []kernel{
		{name: "scaleFloat16", elem: half{}, op: ins(ctx.VDIVPS)},
		{name: "scaleBFloat16", elem: bfloat{round: true}, op: ins(ctx.VDIVPS)},
		{name: "scaleFloat32", elem: raw(4), op: ins(ctx.VDIVPS)},
		{name: "scaleFloat64", elem: raw(8), op: ins(ctx.VDIVPD)},
	} {
		s.form, s.does = scale, "dst[i] / by"
		ks = append(ks, s)
	}
	ks = append(ks, kernel{name: "streamCopy", form: move, does: "src[i]", elem: raw(1), stream: true})
	if g.evex {
		ks = append(ks,
			kernel{name: "sumBFloat16", isa: "AVX512BF16", does: "a[i] + b[i]", elem: bfloatCVT{}, op: f32[0]},
			kernel{name: "prodBFloat16", isa: "AVX512BF16", does: "a[i] * b[i]", elem: bfloatCVT{}, op: f32[1]})
	}
	return ks
}

// ctx is there for its method expressions: the instructions.
type ctx = *build.Context
