package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// op is an operation on the lanes of registers.
type op struct {
	// do writes d = a op b. d is neither a nor b. a stays on the left: of two NaNs
	// x86 gives the first.
	do     func(g *gen, a, b, d operand.Op)
	consts []uint64 // that do uses
}

// ops are the operations of a type, as arithmetic lists them. Where there is none, another type's
// does, or another element.
type ops [len(arithmetic)]op

// ins is an op that is one instruction. Go's assembler has the operands in the
// order opposite to Intel's.
func ins(f func(c *build.Context, ops ...operand.Op)) op {
	return op{do: func(g *gen, a, b, d operand.Op) { f(g.Context, b, a, d) }}
}

// which of two elements a comparison takes.
type which int

const (
	least which = iota
	greatest
)

// unordered is the comparison that is true if an operand is a NaN.
const unordered = operand.U8(3)

// float32s is the minimum or maximum of IEEE 754-2019.
//
// With AVX-512 that is VRANGEPS, which orders zeros, and where an element is a NaN
// the sum, which is the first NaN made quiet. The bits of VRANGEPS's immediate
// choose minimum or maximum and, 4, the sign of the result.
//
// AVX2's minimum returns its second operand for zeros and NaNs. So it is computed
// both ways around: or-ing makes -0 of two different zeros, and-ing makes +0.
func (g *gen) float32s(w which) op {
	return g.compared(w, comparison{ctx.VCMPPS, ctx.VRANGEPS, ctx.VADDPS, ctx.VMINPS, ctx.VORPS, ctx.VMAXPS, ctx.VANDPS,
		ctx.VBLENDVPS})
}

// float64s is float32s for float64.
func (g *gen) float64s(w which) op {
	return g.compared(w, comparison{ctx.VCMPPD, ctx.VRANGEPD, ctx.VADDPD, ctx.VMINPD, ctx.VORPD, ctx.VMAXPD, ctx.VANDPD,
		ctx.VBLENDVPD})
}

// comparison has the instructions for floats of a size.
type comparison struct {
	compare, choose, add, least, or, greatest, and func(c *build.Context, ops ...operand.Op)
	blend                                          func(c *build.Context, mask, x, y, d operand.Op)
}

func (g *gen) compared(w which, f comparison) op {
	c := g.Context
	if g.evex {
		return op{do: func(g *gen, a, b, d operand.Op) {
			k := g.K()
			f.compare(c, unordered, b, a, k)
			f.choose(c, operand.U8(4|w), b, a, d)
			f.add(c, b, a, k, d)
		}}
	}
	choose, join := f.least, f.or
	if w == greatest {
		choose, join = f.greatest, f.and
	}
	return op{do: func(g *gen, a, b, d operand.Op) {
		x, y, nan := g.YMM(), g.YMM(), g.YMM()
		choose(c, b, a, x)
		choose(c, a, b, y)
		join(c, x, y, y)
		f.add(c, b, a, x)
		f.compare(c, unordered, b, a, nan)
		f.blend(c, nan, x, y, d)
	}}
}

// prodInt8 multiplies bytes in pairs, as 16 bits: the lower byte of a product is
// right whatever the upper ones are, and the upper byte is moved down in one
// factor only, so that its product comes out where it belongs.
var prodInt8 = op{consts: []uint64{upperBytes}, do: func(g *gen, a, b, d operand.Op) {
	upper := g.constant(upperBytes)
	x, y := g.vec(), g.vec()
	g.VPSRLW(operand.U8(8), a, x)
	if g.evex {
		g.VPANDD(b, upper, y)
		g.VPMULLW(x, y, y)
		g.VPMULLW(a, b, d)
		g.VPTERNLOGD(operand.U8(0xdc), upper, y, d) // d &^ upper | y
		return
	}
	g.VPAND(b, upper, y)
	g.VPMULLW(x, y, y)
	g.VPMULLW(a, b, x)
	g.VPANDN(x, upper, x)
	g.VPOR(x, y, d)
}}

const upperBytes = 0xff00ff00ff00ff00

// prodInt64 is the schoolbook product of 32-bit digits, which AVX2 has.
var prodInt64 = op{do: func(g *gen, a, b, d operand.Op) {
	x, y := g.vec(), g.vec()
	g.VPSRLQ(operand.U8(32), a, x)
	g.VPMULUDQ(x, b, x)
	g.VPSRLQ(operand.U8(32), b, y)
	g.VPMULUDQ(y, a, y)
	g.VPADDQ(x, y, x)
	g.VPSLLQ(operand.U8(32), x, x)
	g.VPMULUDQ(a, b, y)
	g.VPADDQ(x, y, d)
}}

// words compares and blends: AVX2 has no minimum of 64 bits, and compares them only as signed
// integers. signs, if given, is inverted in both first, for the order of unsigned ones.
func words(w which, signs ...uint64) op {
	return op{consts: signs, do: func(g *gen, a, b, d operand.Op) {
		greater := g.vec()
		x, y := a, b
		for _, sign := range signs {
			x, y = greater, g.vec()
			g.VPXOR(a, g.constant(sign), x)
			g.VPXOR(b, g.constant(sign), y)
		}
		g.VPCMPGTQ(y, x, greater)
		if w == greatest {
			a, b = b, a
		}
		g.VBLENDVPD(greater, b, a, d)
	}}
}
