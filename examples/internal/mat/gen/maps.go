package main

import (
	"math"
	"strings"

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

// places are the elements of a kernel's vectors that it works on, by name.
type places map[string]operand.Mem

// each writes an elementwise kernel.
func (g *gen) each(name, vectors, floats, doc string, body func(at places, f numbers)) {
	pointers := strings.Fields(vectors)
	f := g.begin(name, pointers, floats, false, doc)
	n := g.arg("n")
	at := places{}
	for _, p := range pointers {
		at[p] = operand.Mem{Base: g.arg(p)}
	}
	g.Label("loop")
	body(at, f)
	for _, p := range pointers {
		g.ADDQ(imm(g.vector), at[p].Base)
	}
	g.SUBQ(imm(g.lanes()), n)
	g.JNE(operand.LabelRef("loop"))
	g.end()
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

// exp is e^x (Cephes' expf, with one more term): x = n ln 2 + r, e^r by a polynomial, times 2^n,
// rounded once where that is denormal. What is not a number stays so.
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
	g.each("exp", "x", "shift scale", "x[i] = e^((x[i]-shift)*scale)", func(at places, f numbers) {
		g.VMOVUPS(g.exp(g.mulv(g.sub(g.load(at["x"]), f["shift"]), f["scale"])), at["x"])
	})
	g.each("gelu", "y s h", "", "s[i] = 1/(1+e^-z), y[i] = h[i]/(1+e^-z), z = 2 sqrt(2/pi) (h[i] + 0.044715 h[i]^3)",
		func(at places, _ numbers) {
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
	g.each("geluBack", "dh h s", "", "dh[i] *= s + h*(s*(1-s))*(2 sqrt(2/pi) (1 + 3*0.044715 h^2))",
		func(at places, _ numbers) {
			h, s := g.load(at["h"]), g.load(at["s"])
			d := g.add(g.mulv(g.mulv(h, h), g.f(6*root*cubic)), g.f(2*root))
			q := g.mulv(s, g.sub(g.load(g.f(1)), s))
			y := g.add(s, g.mulv(g.mulv(h, q), d))
			g.VMOVUPS(g.mulv(g.load(at["dh"]), y), at["dh"])
		})
	g.each("add", "dst src", "", "dst[i] += src[i]",
		func(at places, _ numbers) { g.VMOVUPS(g.add(g.load(at["dst"]), at["src"]), at["dst"]) })
	g.each("scale", "x", "by", "x[i] *= by",
		func(at places, f numbers) { g.VMOVUPS(g.mulv(g.load(at["x"]), f["by"]), at["x"]) })
	g.each("softmaxBack", "ds p", "dot scale", "ds[i] = (ds[i]-dot) * p[i] * scale", func(at places, f numbers) {
		g.VMOVUPS(g.mulv(g.mulv(g.sub(g.load(at["ds"]), f["dot"]), at["p"]), f["scale"]), at["ds"])
	})
	g.each("norm", "y xh x w", "mean rs", "xh[i] = (x[i]-mean) * rs, y[i] = xh[i] * w[i]", func(at places, f numbers) {
		h := g.mulv(g.sub(g.load(at["x"]), f["mean"]), f["rs"])
		g.VMOVUPS(h, at["xh"])
		g.VMOVUPS(g.mulv(h, at["w"]), at["y"])
	})
	g.each("normBack", "dx dw dy xh w", "a b rs", "dw[i] += dy[i]*xh[i], dx[i] += (dy[i]*w[i] - a - xh[i]*b) * rs",
		func(at places, f numbers) {
			dy, xh := g.load(at["dy"]), g.load(at["xh"])
			g.VMOVUPS(g.add(g.load(at["dw"]), g.mulv(dy, xh)), at["dw"])
			e := g.sub(g.sub(g.mulv(dy, at["w"]), f["a"]), g.mulv(xh, f["b"]))
			g.VMOVUPS(g.add(g.load(at["dx"]), g.mulv(e, f["rs"])), at["dx"])
		})
	g.each("adamW", "p grad m v", "b1 a1 b2 a2 rate root eps keep",
		"m[i] = b1*m[i] + a1*grad[i], v[i] = b2*v[i] + a2*grad[i]*grad[i], p[i] = keep*p[i] - rate*m[i]/(root*sqrt(v[i])+eps)", func(at places, f numbers) {
			d := g.load(at["grad"])
			m := g.add(g.mulv(f["b1"], at["m"]), g.mulv(f["a1"], d))
			v := g.add(g.mulv(f["b2"], at["v"]), g.mulv(g.mulv(f["a2"], d), d))
			g.VMOVUPS(m, at["m"])
			g.VMOVUPS(v, at["v"])
			q := g.vec()
			g.VSQRTPS(v, q)
			q = g.add(g.mulv(q, f["root"]), f["eps"])
			g.VMOVUPS(g.sub(g.mulv(f["keep"], at["p"]), g.div(g.mulv(f["rate"], m), q)), at["p"])
		})
}
