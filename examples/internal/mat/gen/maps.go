package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of the specification.
const (
	root  = 0.7978845608028654 // of 2/pi
	cubic = 0.044715
)

// f is a constant in all lanes.
func (g *gen) f(x float64) operand.Mem { return g.bits(math.Float32bits(float32(x))) }

// each writes the loop of an elementwise kernel over n elements, which are a multiple of 16, and its end.
func (g *gen) each(pointers []string, body func(at map[string]operand.Mem)) {
	n := g.arg("n")
	at := map[string]operand.Mem{}
	for _, p := range pointers {
		at[p] = operand.Mem{Base: g.arg(p)}
	}
	g.Label("loop")
	body(at)
	for _, p := range pointers {
		g.ADDQ(imm(g.vector), at[p].Base)
	}
	g.SUBQ(imm(g.lanes()), n)
	g.JNE(operand.LabelRef("loop"))
	g.VZEROUPPER()
	g.RET()
}

// load is an element of memory in a register.
func (g *gen) load(m operand.Mem) reg.VecVirtual {
	v := g.vec()
	g.VMOVUPS(m, v)
	return v
}

// add, sub, mulv and div return a op b, rounded.
func (g *gen) add(a, b operand.Op) reg.VecVirtual  { v := g.vec(); g.VADDPS(b, a, v); return v }
func (g *gen) sub(a, b operand.Op) reg.VecVirtual  { v := g.vec(); g.VSUBPS(b, a, v); return v }
func (g *gen) mulv(a, b operand.Op) reg.VecVirtual { v := g.vec(); g.VMULPS(b, a, v); return v }
func (g *gen) div(a, b operand.Op) reg.VecVirtual  { v := g.vec(); g.VDIVPS(b, a, v); return v }

// exp is e^x (Cephes' expf, with one more term): x = n ln 2 + r, e^r by a polynomial, times 2^n, rounded once where that
// is denormal. What is not a number stays so.
func (g *gen) exp(x operand.Op) reg.VecVirtual {
	r, n, t := g.vec(), g.vec(), g.vec()
	g.VMOVUPS(g.f(-104), r)
	g.VMAXPS(x, r, r) // of two the second, if one is no number
	hi := g.vec()
	g.VMOVUPS(g.f(89), hi)
	g.VMINPS(r, hi, r)
	g.VMULPS(g.f(math.Log2E), r, n)
	if g.evex {
		g.VRNDSCALEPS(operand.U8(8), n, n)
	} else {
		g.VROUNDPS(operand.U8(8), n, n)
	}
	const ln2hi = 0.693359375
	g.VFNMADD231PS(g.f(ln2hi), n, r)
	g.VFNMADD231PS(g.f(math.Ln2-ln2hi), n, r)
	g.VMOVUPS(g.f(1./5040), t)
	for _, c := range []float64{1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2} {
		g.VFMADD213PS(g.f(c), r, t)
	}
	q := g.mulv(r, r)
	g.VFMADD213PS(r, q, t) // t = t*r*r + r
	y := g.add(t, g.f(1))
	if g.evex {
		out := g.vec()
		g.VSCALEFPS(n, y, out)
		return out
	}
	// 2^n is two factors, the first of which leaves y as exact as it is.
	i, half := g.vec(), g.vec()
	g.VCVTPS2DQ(n, i)
	g.VPSRAD(operand.U8(1), i, half)
	g.VPSUBD(half, i, i)
	for _, e := range []operand.Op{half, i} {
		g.VPADDD(g.bits(127), e, e)
		g.VPSLLD(operand.U8(23), e, e)
	}
	return g.mulv(g.mulv(y, half), i)
}

// product is x*(hi+lo) as two such numbers.
func (g *gen) product(x, hi, lo reg.VecVirtual) (high, low reg.VecVirtual) {
	high, low = g.mulv(x, hi), g.mulv(x, lo)
	rest := g.vec()
	g.VMOVAPS(high, rest)
	g.VFMSUB231PS(x, hi, rest)
	return high, g.add(low, rest)
}

func (g *gen) maps() {
	ints := []string{"n"}
	g.function("exp", ints, []string{"x"}, []string{"shift", "scale"}, false, "x[i] = e^((x[i]-shift)*scale)")
	shift, scale := g.scalar("shift"), g.scalar("scale")
	g.each([]string{"x"}, func(at map[string]operand.Mem) {
		g.VMOVUPS(g.exp(g.mulv(g.sub(g.load(at["x"]), shift), scale)), at["x"])
	})

	ps := []string{"y", "s", "h"}
	g.function("gelu", ints, ps, nil, false, "s[i] = 1/(1+e^-z), y[i] = h[i]/(1+e^-z), z = 2 sqrt(2/pi) (h[i] + 0.044715 h[i]^3)")
	g.each(ps, func(at map[string]operand.Mem) {
		h := g.load(at["h"])
		z := g.mulv(h, g.add(g.mulv(g.mulv(h, h), g.f(2*root*cubic)), g.f(2*root)))
		minus, mask := g.vec(), g.vec()
		g.VMOVUPS(z, minus)
		g.VPSRAD(operand.U8(31), z, mask) // all ones where z < 0
		sign := g.load(g.bits(1 << 31))
		g.VORPS(sign, minus, minus)
		e := g.exp(minus)
		num := g.vec()
		g.xor(g.f(1), e, num)
		g.and(mask, num, num)
		g.xor(g.f(1), num, num) // e where z < 0, else 1
		// 1/(1+e) as r and rest: the sum has lost less, the division c/(1+e).
		d := g.add(e, g.f(1))
		less := g.sub(e, g.sub(d, g.f(1)))
		r := g.div(g.load(g.f(1)), d)
		c := g.load(g.f(1))
		g.VFNMADD231PS(d, r, c)
		g.VFNMADD231PS(less, r, c)
		s, low := g.product(num, r, g.mulv(r, c))
		g.VMOVUPS(g.add(s, low), at["s"])
		y, low := g.product(h, s, low)
		g.VMOVUPS(g.add(y, low), at["y"])
	})

	ps = []string{"dh", "h", "s"}
	g.function("geluBack", ints, ps, nil, false, "dh[i] *= s + h*(s*(1-s))*(2 sqrt(2/pi) (1 + 3*0.044715 h^2))")
	g.each(ps, func(at map[string]operand.Mem) {
		h, s := g.load(at["h"]), g.load(at["s"])
		d := g.add(g.mulv(g.mulv(h, h), g.f(6*root*cubic)), g.f(2*root))
		q := g.mulv(s, g.sub(g.load(g.f(1)), s))
		y := g.add(s, g.mulv(g.mulv(h, q), d))
		g.VMOVUPS(g.mulv(g.load(at["dh"]), y), at["dh"])
	})

	ps = []string{"dst", "src"}
	g.function("add", ints, ps, nil, false, "dst[i] += src[i]")
	g.each(ps, func(at map[string]operand.Mem) {
		g.VMOVUPS(g.add(g.load(at["dst"]), at["src"]), at["dst"])
	})

	ps = []string{"x"}
	g.function("scale", ints, ps, []string{"by"}, false, "x[i] *= by")
	by := g.scalar("by")
	g.each(ps, func(at map[string]operand.Mem) { g.VMOVUPS(g.mulv(g.load(at["x"]), by), at["x"]) })

	ps = []string{"ds", "p"}
	g.function("softmaxBack", ints, ps, []string{"dot", "scale"}, false, "ds[i] = (ds[i]-dot) * p[i] * scale")
	dot, scale := g.scalar("dot"), g.scalar("scale")
	g.each(ps, func(at map[string]operand.Mem) {
		g.VMOVUPS(g.mulv(g.mulv(g.sub(g.load(at["ds"]), dot), at["p"]), scale), at["ds"])
	})

	ps = []string{"y", "xh", "x", "w"}
	g.function("norm", ints, ps, []string{"mean", "rs"}, false, "xh[i] = (x[i]-mean) * rs, y[i] = xh[i] * w[i]")
	mean, rs := g.scalar("mean"), g.scalar("rs")
	g.each(ps, func(at map[string]operand.Mem) {
		h := g.mulv(g.sub(g.load(at["x"]), mean), rs)
		g.VMOVUPS(h, at["xh"])
		g.VMOVUPS(g.mulv(h, at["w"]), at["y"])
	})

	ps = []string{"dx", "dw", "dy", "xh", "w"}
	g.function("normBack", ints, ps, []string{"a", "b", "rs"}, false, "dw[i] += dy[i]*xh[i], dx[i] += (dy[i]*w[i] - a - xh[i]*b) * rs")
	a, b, rs := g.scalar("a"), g.scalar("b"), g.scalar("rs")
	g.each(ps, func(at map[string]operand.Mem) {
		dy, xh := g.load(at["dy"]), g.load(at["xh"])
		g.VMOVUPS(g.add(g.load(at["dw"]), g.mulv(dy, xh)), at["dw"])
		e := g.sub(g.sub(g.mulv(dy, at["w"]), a), g.mulv(xh, b))
		g.VMOVUPS(g.add(g.load(at["dx"]), g.mulv(e, rs)), at["dx"])
	})

	ps = []string{"p", "grad", "m", "v"}
	g.function("adamW", ints, ps, []string{"b1", "a1", "b2", "a2", "rate", "root", "eps", "keep"}, false,
		"m[i] = b1*m[i] + a1*grad[i], v[i] = b2*v[i] + a2*grad[i]*grad[i], p[i] = keep*p[i] - rate*m[i]/(root*sqrt(v[i])+eps)")
	b1, a1, b2, a2 := g.scalar("b1"), g.scalar("a1"), g.scalar("b2"), g.scalar("a2")
	rate, root, eps, keep := g.scalar("rate"), g.scalar("root"), g.scalar("eps"), g.scalar("keep")
	g.each(ps, func(at map[string]operand.Mem) {
		d := g.load(at["grad"])
		m := g.add(g.mulv(b1, at["m"]), g.mulv(a1, d))
		v := g.add(g.mulv(b2, at["v"]), g.mulv(g.mulv(a2, d), d))
		g.VMOVUPS(m, at["m"])
		g.VMOVUPS(v, at["v"])
		q := g.vec()
		g.VSQRTPS(v, q)
		q = g.add(g.mulv(q, root), eps)
		g.VMOVUPS(g.sub(g.mulv(keep, at["p"]), g.div(g.mulv(rate, m), q)), at["p"])
	})
}
