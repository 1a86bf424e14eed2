package main

import "github.com/mmcloughlin/avo/build"

// kernels lists what is made for g. Signed and unsigned integers share their sums
// and products, which are the same modulo 2^n.
func kernels(g *gen) []kernel {
	type row struct {
		name string
		elem elem
		ops  ops
	}
	f32 := ops{ins(ctx.VADDPS), ins(ctx.VMULPS), g.float32s(least), g.float32s(greatest)}
	rows := []row{
		{"Int8", raw(1), ops{ins(ctx.VPADDB), prodInt8, ins(ctx.VPMINSB), ins(ctx.VPMAXSB)}},
		{"Uint8", raw(1), ops{2: ins(ctx.VPMINUB), ins(ctx.VPMAXUB)}},
		{"Int16", raw(2), ops{ins(ctx.VPADDW), ins(ctx.VPMULLW), ins(ctx.VPMINSW), ins(ctx.VPMAXSW)}},
		{"Uint16", raw(2), ops{2: ins(ctx.VPMINUW), ins(ctx.VPMAXUW)}},
		{"Int32", raw(4), ops{ins(ctx.VPADDD), ins(ctx.VPMULLD), ins(ctx.VPMINSD), ins(ctx.VPMAXSD)}},
		{"Uint32", raw(4), ops{2: ins(ctx.VPMINUD), ins(ctx.VPMAXUD)}},
		{"Float32", raw(4), f32},
		{"Float64", raw(8), ops{ins(ctx.VADDPD), ins(ctx.VMULPD), g.float64s(least), g.float64s(greatest)}},
		{"Float16", half{}, f32},
		{"BFloat16", bfloat{round: true}, ops{f32[0], f32[1]}},
		{"BFloat16", bfloat{}, ops{2: f32[2], f32[3]}},
	}
	if g.evex {
		rows = append(rows,
			row{"Int64", raw(8), ops{ins(ctx.VPADDQ), ins(ctx.VPMULLQ), ins(ctx.VPMINSQ), ins(ctx.VPMAXSQ)}},
			row{"Uint64", raw(8), ops{2: ins(ctx.VPMINUQ), ins(ctx.VPMAXUQ)}})
	} else {
		rows = append(rows,
			row{"Int64", raw(8), ops{ins(ctx.VPADDQ), prodInt64, words(least), words(greatest)}},
			row{"Uint64", raw(8), ops{2: words(least, 1<<63), words(greatest, 1<<63)}})
	}

	var ks []kernel
	for _, r := range rows {
		for i, o := range arithmetic {
			if r.ops[i].do != nil {
				ks = append(ks, kernel{name: o.name + r.name, does: o.does, elem: r.elem, op: r.ops[i]})
			}
		}
	}
	for _, r := range rows {
		if streams(r.name) {
			sum := kernel{name: "streamSum" + r.name, does: arithmetic[0].does, elem: r.elem, op: r.ops[0], stream: true}
			two := sum
			two.name, two.form = "streamBoth"+r.name, both
			ks = append(ks, sum, two)
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
